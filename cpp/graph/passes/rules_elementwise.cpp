// Rules whose root is an elementwise operation. No rule turns a NaN into a number or a number into
// a NaN. A NaN's sign and payload may change only if the operation itself does not define them.
#include <cmath>
#include <initializer_list>

#include "alu/eval.h"
#include "graph/passes/simplify_rules.h"

namespace rune::graph {

namespace {

bool one_of(AluOp op, std::initializer_list<AluOp> ops) {
  for (const AluOp candidate : ops)
    if (op == candidate) return true;
  return false;
}

bool is(const std::optional<Scalar>& value, const Scalar& wanted) {
  return value && *value == wanted;
}

// -1, or true.
Scalar all_ones(DType dtype) {
  return Scalar::of(dtype, int64_t{-1});
}

// The operation of a Unary node, otherwise nothing.
std::optional<AluOp> unary_op(const Node& node) {
  if (const auto* n = node.as<Unary>()) return n->op;
  return std::nullopt;
}

std::optional<AluOp> binary_op(const Node& node) {
  if (const auto* n = node.as<Binop>()) return n->op;
  return std::nullopt;
}

// The c for which `x op c` is x, for every x of the dtype, if there is one.
std::optional<Scalar> identity_of(AluOp op, DType dtype) {
  const bool real = is_float(dtype);
  if (op == AluOp::Add && real) return Scalar::of(dtype, -0.0);  // -0 + 0 is 0
  if (one_of(op, {AluOp::Add, AluOp::Sub, AluOp::Xor, AluOp::Or, AluOp::Shl, AluOp::Shr}))
    return Scalar::zero(dtype);
  if (op == AluOp::Idiv && real) return std::nullopt;  // because it rounds
  if (one_of(op, {AluOp::Mul, AluOp::Pow, AluOp::Fdiv, AluOp::Div, AluOp::Idiv}))
    return Scalar::one(dtype);
  if (op == AluOp::Max) return Scalar::lowest(dtype);
  if (op == AluOp::Min) return Scalar::highest(dtype);
  if (op == AluOp::And) return all_ones(dtype);
  if (op == AluOp::Cmpeq && is_bool(dtype)) return Scalar::one(dtype);
  if (op == AluOp::Cmpne && is_bool(dtype)) return Scalar::zero(dtype);
  return std::nullopt;
}

// The c for which `x op c` is c, for every x of the dtype. Floats have none, because of NaN and
// inf.
std::optional<Scalar> absorber_of(AluOp op, DType dtype) {
  if (is_float(dtype)) return std::nullopt;
  // Division by zero gives 0.
  if (one_of(op, {AluOp::Mul, AluOp::And, AluOp::Div, AluOp::Idiv, AluOp::Mod, AluOp::Fmod}))
    return Scalar::zero(dtype);
  if (op == AluOp::Or) return all_ones(dtype);
  if (op == AluOp::Max) return Scalar::highest(dtype);
  if (op == AluOp::Min) return Scalar::lowest(dtype);
  return std::nullopt;
}

Value constant_to_the_right(Simplifier& s, const Node& node) {
  const AluOp op = node.as<Binop>()->op;
  const auto left = s.splat(node.inputs[0]);
  if (!left || s.splat(node.inputs[1])) return {};
  // (Only zeros tell which operand Max and Min give if both are equal.)
  const bool is_extremum = one_of(op, {AluOp::Max, AluOp::Min, AluOp::Fmax, AluOp::Fmin});
  if (!info(op).commutes(left->dtype()) && !(is_extremum && left->as_double() != 0)) return {};
  return s.alu(op, {node.inputs[1], node.inputs[0]});
}

Value right_identity(Simplifier& s, const Node& node) {
  const auto c = s.splat(node.inputs[1]);
  if (!c) return {};
  const auto identity = identity_of(node.as<Binop>()->op, c->dtype());
  return identity && *c == *identity ? node.inputs[0] : Value{};
}

Value right_absorber(Simplifier& s, const Node& node) {
  const auto c = s.splat(node.inputs[1]);
  if (!c) return {};
  const auto absorber = absorber_of(node.as<Binop>()->op, c->dtype());
  return absorber && *c == *absorber ? node.inputs[1] : Value{};
}

Value known_result(Simplifier& s, const Node& node) {
  const AluOp op = node.as<Binop>()->op;
  const auto left = s.splat(node.inputs[0]), right = s.splat(node.inputs[1]);
  const DType dtype = s[node.inputs[0]].dtype();
  // x ** 0 and 1 ** x are 1, even if x is NaN.
  if (op == AluOp::Pow) {
    if (right && right->as_double() == 0) return s.full(Scalar::one(dtype), node.shape());
    if (is(left, Scalar::one(dtype))) return node.inputs[0];
  }
  if (one_of(op, {AluOp::Mod, AluOp::Fmod}) && is_integer(dtype) && is(right, Scalar::one(dtype)))
    return s.full(Scalar::zero(dtype), node.shape());
  if (is_float(dtype)) return {};
  const Scalar lowest = Scalar::lowest(dtype), highest = Scalar::highest(dtype);
  if (op == AluOp::Cmplt && (is(right, lowest) || is(left, highest)))
    return s.full(Scalar::of(DType::Bool, false), node.shape());
  if (op == AluOp::Cmple && (is(right, highest) || is(left, lowest)))
    return s.full(Scalar::of(DType::Bool, true), node.shape());
  // Unsigned x <= 0 must not reach LLVM 22. Its vector code for where(x <= 0, x, 0) / bool gives 0
  // instead of NaN.
  if (op == AluOp::Cmple && (is(right, lowest) || is(left, highest)))
    return s.alu(AluOp::Cmpeq, {node.inputs[0], node.inputs[1]});
  return {};
}

Value equal_operands(Simplifier& s, const Node& node) {
  const AluOp op = node.as<Binop>()->op;
  if (node.inputs[0] != node.inputs[1]) return {};
  if (info(op).has(alu_flags::Idempotent)) return node.inputs[0];
  // NaN < NaN is false, like 1 < 1.
  if (op == AluOp::Cmplt) return s.full(Scalar::of(DType::Bool, false), node.shape());
  if (is_float(s[node.inputs[0]].dtype())) return {};
  if (one_of(op, {AluOp::Sub, AluOp::Xor, AluOp::Cmpne}))
    return s.full(Scalar::zero(node.dtype()), node.shape());
  if (one_of(op, {AluOp::Cmpeq, AluOp::Cmple}))
    return s.full(Scalar::of(DType::Bool, true), node.shape());
  return {};
}

Value power_to_product(Simplifier& s, const Node& node) {
  const DType dtype = node.dtype();
  if (node.as<Binop>()->op != AluOp::Pow) return {};
  if (!is(s.splat(node.inputs[1]), Scalar::of(dtype, 2))) return {};
  return s.alu(AluOp::Mul, {node.inputs[0], node.inputs[0]});
}

// x / 2^k is the rounding of the same real number as x * 2^-k, if 2^-k is exact.
Value quotient_to_product(Simplifier& s, const Node& node) {
  const auto c = s.splat(node.inputs[1]);
  if (node.as<Binop>()->op != AluOp::Fdiv || !c) return {};
  int exponent;
  const double value = c->as_double();
  if (!std::isfinite(value) || std::fabs(std::frexp(value, &exponent)) != 0.5) return {};
  // If the reciprocal is subnormal, the quotient stays, because a target may flush subnormals to
  // zero. The smallest normal numbers are 2^-14 (float16), 2^-126 (float32, bfloat16) and 2^-1022.
  const int lowest = node.dtype() == DType::Float16   ? -14
                     : node.dtype() == DType::Float64 ? -1022
                                                      : -126;
  if (1 - exponent < lowest || exponent - 1 < lowest) return {};
  return s.alu(AluOp::Mul,
               {node.inputs[0], s.full(Scalar::of(node.dtype(), 1 / value), node.shape())});
}

// Wrapping makes integer operations associative. Floats stay in the user's order.
Value merge_constants(Simplifier& s, const Node& node) {
  const AluOp op = node.as<Binop>()->op;
  if (is_float(node.dtype()) || !info(op).has(alu_flags::Associative)) return {};
  const auto outer = s.splat(node.inputs[1]);
  const Node& inner = s[node.inputs[0]];
  if (!outer || binary_op(inner) != op) return {};
  const auto c = s.splat(inner.inputs[1]);
  if (!c) return {};
  const Value x = inner.inputs[0];
  const Scalar both[] = {*c, *outer};
  return s.alu(op, {x, s.full(evaluate(op, both), node.shape())});
}

Value subtraction(Simplifier& s, const Node& node) {
  const AluOp op = node.as<Binop>()->op;
  if (!is_integer(node.dtype()) || !one_of(op, {AluOp::Add, AluOp::Sub})) return {};
  const Value x = node.inputs[0], y = node.inputs[1];
  if (unary_op(s[y]) == AluOp::Neg)
    return s.alu(op == AluOp::Add ? AluOp::Sub : AluOp::Add, {x, s[y].inputs[0]});
  if (op == AluOp::Add) return {};
  if (const auto c = s.splat(y)) {
    const Scalar operand[] = {*c};
    return s.alu(AluOp::Add, {x, s.full(evaluate(AluOp::Neg, operand), node.shape())});
  }
  return is(s.splat(x), Scalar::zero(node.dtype())) ? s.alu(AluOp::Neg, {y}) : Value{};
}

Value comparison_with_bool(Simplifier& s, const Node& node) {
  const AluOp op = node.as<Binop>()->op;
  const auto c = s.splat(node.inputs[1]);
  if (!c) return {};
  const DType dtype = c->dtype();
  const bool inverts =
      is_bool(dtype) ? (op == AluOp::Cmpne && c->as_bool()) || (op == AluOp::Cmpeq && !c->as_bool())
                     : false;
  const bool flips = op == AluOp::Xor && *c == all_ones(dtype);
  return inverts || flips ? s.alu(AluOp::Not, {node.inputs[0]}) : Value{};
}

Value involution(Simplifier& s, const Node& node) {
  const AluOp op = node.as<Unary>()->op;
  const Node& inner = s[node.inputs[0]];
  if (!one_of(op, {AluOp::Neg, AluOp::Not}) || unary_op(inner) != op) return {};
  return inner.inputs[0];
}

Value projection(Simplifier& s, const Node& node) {
  const AluOp op = node.as<Unary>()->op;
  const auto inner = unary_op(s[node.inputs[0]]);
  if (op == AluOp::Abs && kind(node.dtype()) == Kind::Uint) return node.inputs[0];
  if (!inner) return {};
  const auto rounds = [](AluOp o) {
    return one_of(o, {AluOp::Floor, AluOp::Ceil, AluOp::Trunc, AluOp::Rint});
  };
  const bool same = op == *inner && one_of(op, {AluOp::Abs, AluOp::Sign});
  return same || (rounds(op) && rounds(*inner)) ? node.inputs[0] : Value{};
}

Value abs_of_neg(Simplifier& s, const Node& node) {
  const Node& inner = s[node.inputs[0]];
  if (node.as<Unary>()->op != AluOp::Abs || unary_op(inner) != AluOp::Neg) return {};
  return is_signed(node.dtype()) ? s.alu(AluOp::Abs, {inner.inputs[0]}) : Value{};
}

Value not_of_comparison(Simplifier& s, const Node& node) {
  const auto inner = binary_op(s[node.inputs[0]]);
  if (node.as<Unary>()->op != AluOp::Not || !inner) return {};
  const std::vector<Value> operands = s[node.inputs[0]].inputs;
  if (*inner == AluOp::Cmpeq) return s.alu(AluOp::Cmpne, operands);
  if (*inner == AluOp::Cmpne) return s.alu(AluOp::Cmpeq, operands);
  if (is_float(s[operands[0]].dtype())) return {};  // for NaN, no comparison negates another
  if (*inner == AluOp::Cmplt) return s.alu(AluOp::Cmple, {operands[1], operands[0]});
  if (*inner == AluOp::Cmple) return s.alu(AluOp::Cmplt, {operands[1], operands[0]});
  return {};
}

Value where_chosen(Simplifier& s, const Node& node) {
  if (node.as<Ternary>()->op != AluOp::Where) return {};
  if (node.inputs[1] == node.inputs[2]) return node.inputs[1];
  const auto c = s.splat(node.inputs[0]);
  return c ? node.inputs[c->as_bool() ? 1 : 2] : Value{};
}

Value where_not(Simplifier& s, const Node& node) {
  const Node& condition = s[node.inputs[0]];
  if (node.as<Ternary>()->op != AluOp::Where || unary_op(condition) != AluOp::Not) return {};
  return s.alu(AluOp::Where, {condition.inputs[0], node.inputs[2], node.inputs[1]});
}

Value where_of_bools(Simplifier& s, const Node& node) {
  if (node.as<Ternary>()->op != AluOp::Where || !is_bool(node.dtype())) return {};
  const auto a = s.splat(node.inputs[1]), b = s.splat(node.inputs[2]);
  if (!a || !b || a->as_bool() == b->as_bool()) return {};
  return a->as_bool() ? node.inputs[0] : s.alu(AluOp::Not, {node.inputs[0]});
}

Value where_nested(Simplifier& s, const Node& node) {
  if (node.as<Ternary>()->op != AluOp::Where) return {};
  const Value condition = node.inputs[0];
  std::vector<Value> inputs = node.inputs;
  for (const size_t branch : {1, 2}) {
    const auto* inner = s[inputs[branch]].as<Ternary>();
    if (inner && inner->op == AluOp::Where && s[inputs[branch]].inputs[0] == condition)
      inputs[branch] = s[inputs[branch]].inputs[branch];
  }
  return inputs == node.inputs ? Value{} : s.alu(AluOp::Where, inputs);
}

Value mulacc_of_constant(Simplifier& s, const Node& node) {
  if (node.as<Ternary>()->op != AluOp::Mulacc) return {};
  const Value a = node.inputs[0], b = node.inputs[1], c = node.inputs[2];
  const DType dtype = node.dtype();
  if (s.splat(a) && !s.splat(b)) return s.alu(AluOp::Mulacc, {b, a, c});
  // If a factor is 1 or the addend is neutral, the remaining operation rounds once, like the whole.
  if (is(s.splat(b), Scalar::one(dtype))) return s.alu(AluOp::Add, {a, c});
  if (is(s.splat(c), *identity_of(AluOp::Add, dtype))) return s.alu(AluOp::Mul, {a, b});
  return is_integer(dtype) && is(s.splat(b), Scalar::zero(dtype)) ? c : Value{};
}

}  // namespace

// In the comments, x is any operand and c a constant whose elements are equal.
std::vector<RulesOfKind> elementwise_rules() {
  return {{NodeKind::Binop,
           {
               constant_to_the_right,  // c + x -> x + c
               right_identity,         // x * 1 -> x
               right_absorber,         // x & 0 -> 0
               known_result,           // x ** 0 -> 1
               equal_operands,         // x - x -> 0
               power_to_product,       // x ** 2 -> x * x
               quotient_to_product,    // x / 4.0 -> x * 0.25
               merge_constants,        // (x + c) + d -> x + (c + d)
               subtraction,            // x - c -> x + -c, integers
               comparison_with_bool,   // x != true -> not x
           }},
          {NodeKind::Unary,
           {
               involution,         // neg neg x -> x
               projection,         // abs abs x -> abs x
               abs_of_neg,         // abs neg x -> abs x
               not_of_comparison,  // not (x == y) -> x != y
           }},
          {NodeKind::Ternary,
           {
               where_chosen,        // where(c, x, x) -> x
               where_not,           // where(not c, x, y) -> where(c, y, x)
               where_of_bools,      // where(c, true, false) -> c
               where_nested,        // where(c, where(c, x, y), z) -> where(c, x, z)
               mulacc_of_constant,  // x * 1 + y -> x + y
           }}};
}

}  // namespace rune::graph
