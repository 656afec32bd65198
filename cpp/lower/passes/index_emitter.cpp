#include "lower/passes/index_emitter.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "base/math.h"

namespace rune::lower {

using sym::Expr;
using sym::Mask;

IndexEmitter::IndexEmitter(Launch& launch, int lanes)
    : builder_(launch.builder), graph_(launch.graph), dtype_(launch.index_dtype), lanes_(lanes) {
  if (lanes_ > 1) {
    std::vector<Scalar> numbers;
    for (int i = 0; i < lanes_; ++i) numbers.push_back(Scalar::of(dtype_, i));
    lane_numbers_ = builder_.vconst(std::move(numbers));
  }
  // All kernels take all variables, in the graph's order, and then the launch's own.
  for (const SymVar& var : launch.vars)
    variables_[schedule::kFirstSizeVariable + graph_.definition(var).id] =
        builder_.define_var(var, dtype_);
  std::vector<DType> dtypes(launch.kernel.arguments.size(), dtype_);
  for (const auto& constant : launch.kernel.constants) dtypes[constant.argument] = DType::Int64;
  for (size_t i = 0; i < dtypes.size(); ++i) {
    const SymVar& var = launch.kernel.arguments[i];
    arguments_.push_back(bind(builder_.define_var(var, dtypes[i]), {var.min_val, var.max_val}));
  }
}

Expr IndexEmitter::lane(int64_t used) const {
  // With bounds of 0 and 0, a single lane would be a constant, and values that depend on it no
  // vectors. A single lane is at an axis's last position, so the lane before it exists, and the
  // lane after it does not.
  const sym::Bounds bounds = used == 1 ? sym::Bounds{-1, 0} : sym::Bounds{0, used - 1};
  return Expr::variable(kFirstLaneVariable + static_cast<uint32_t>(used), bounds);
}

Expr IndexEmitter::bind(Var value, sym::Bounds bounds) {
  const bool is_vector = builder_.type(value).lanes > 1;
  const uint32_t id = is_vector ? next_vector_variable_++ : next_variable_++;
  variables_[id] = value;
  return Expr::variable(id, bounds);
}

Var IndexEmitter::emit_atom(const sym::Atom& atom) {
  if (atom.kind == sym::Atom::Kind::Variable)
    return is_lane(atom.variable) ? lane_numbers_ : variables_.at(atom.variable);
  if (const Var result = divide_lanes(atom); result.valid()) return result;
  const Var inner = emit(atom.inner);
  const Var divisor = builder_.splat(constant(atom.divisor), builder_.type(inner).lanes);
  // If nothing is negative, truncation equals rounding down, and is cheaper.
  const bool nonnegative = atom.inner.bounds().low >= 0;
  const bool is_div = atom.kind == sym::Atom::Kind::Div;
  const AluOp op =
      is_div ? (nonnegative ? AluOp::Div : AluOp::Idiv) : (nonnegative ? AluOp::Fmod : AluOp::Mod);
  return builder_.alu(op, {inner, divisor});
}

// For 0 <= x < 2^31 and a divisor d <= 2^k, x / d is (x * factor) >> (31 + k), if factor is
// 2^(31 + k) / d rounded up. The rounding adds less than 1 to factor, so less than 1 / d to the
// quotient, which does not reach the next integer.
Var IndexEmitter::divide_lanes(const sym::Atom& atom) {
  constexpr int64_t kMost = int64_t{1} << 30;  // leaves room for lanes beyond an axis
  const auto [low, high] = atom.inner.bounds();
  const int64_t divisor = atom.divisor;
  if (dtype_ != DType::Int64 || !depends_on_lane(atom.inner) || low <= -kMost || divisor >= kMost)
    return {};
  // Without this multiple of the divisor, the dividend may be negative.
  const int64_t added = low < 0 ? ceil_div(-low, divisor) : 0;
  if (high >= kMost - added * divisor) return {};
  const auto number = [&](int64_t n) {
    return builder_.splat(builder_.constant(Scalar::of(DType::Uint64, n)), lanes_);
  };
  const int shift = 31 + std::bit_width(static_cast<uint64_t>(divisor - 1));
  const Var factor = number(ceil_div(int64_t{1} << shift, divisor));
  const Var inner = builder_.cast(emit(atom.inner + Expr(added * divisor)), DType::Uint64);
  // LLVM multiplies faster if it sees that the operands have 32 bits.
  const Var x = builder_.alu(AluOp::And, {inner, number(0xffffffff)});
  Var result = builder_.alu(AluOp::Shr, {builder_.alu(AluOp::Mul, {x, factor}), number(shift)});
  if (atom.kind == sym::Atom::Kind::Mod)
    result = builder_.alu(AluOp::Sub, {x, builder_.alu(AluOp::Mul, {result, number(divisor)})});
  else if (added != 0)
    result = builder_.alu(AluOp::Sub, {result, number(added)});
  return builder_.cast(result, dtype_);
}

Var IndexEmitter::emit(const Expr& expr) {
  struct Part {
    Var value;
    int64_t coefficient;
    int rank;
  };
  // Parts from outer scopes are added first, so that their sum is hoisted. The constant comes after
  // all scalars, so that adjacent elements share a base. Vectors come last.
  constexpr int kConstant = 1 << 16, kVectors = 1 << 17;
  std::vector<Part> parts;
  for (const Expr::Term& term : expr.terms()) {
    const Var value = emit_atom(*term.atom);
    const bool vector = builder_.type(value).lanes > 1;
    parts.push_back({value, term.coefficient, builder_.depth_of(value) + (vector ? kVectors : 0)});
  }
  if (expr.constant() != 0 || parts.empty())
    parts.push_back({constant(expr.constant()), 1, kConstant});
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Part& a, const Part& b) { return a.rank < b.rank; });
  Var sum;
  for (const Part& part : parts) {
    Var value = part.value;
    const int lanes = builder_.type(value).lanes;
    const bool subtract = part.coefficient == -1 && sum.valid();
    if (part.coefficient != 1 && !subtract)
      value = builder_.alu(AluOp::Mul, {value, builder_.splat(constant(part.coefficient), lanes)});
    if (!sum.valid()) {
      sum = value;
    } else {
      const Var left = builder_.type(sum).lanes == lanes ? sum : builder_.splat(sum, lanes);
      sum = builder_.alu(subtract ? AluOp::Sub : AluOp::Add, {left, value});
    }
  }
  return sum;
}

Var IndexEmitter::emit_condition(const Expr& expr) {
  // rest - lane >= 0 and rest + lane >= 0 compare the lane numbers themselves.
  const auto stride = lane_stride(expr);
  if (stride && (*stride == 1 || *stride == -1)) {
    const Expr rest = with_lane(expr, Expr(0));
    if (*stride == -1)
      return builder_.alu(AluOp::Cmple, {lane_numbers_, builder_.splat(emit(rest), lanes_)});
    return builder_.alu(AluOp::Cmple, {builder_.splat(emit(rest * -1), lanes_), lane_numbers_});
  }
  const Var value = emit(expr);
  const Var zero = builder_.splat(constant(0), builder_.type(value).lanes);
  return builder_.alu(AluOp::Cmple, {zero, value});
}

Var IndexEmitter::emit(const Mask& mask) {
  if (mask.is_false()) return builder_.constant(Scalar::of(DType::Bool, false));
  std::vector<Var> conditions;
  for (const Expr& expr : mask.conditions()) conditions.push_back(emit_condition(expr));
  // Conditions of outer loops come first, so that their conjunction is hoisted.
  std::stable_sort(conditions.begin(), conditions.end(),
                   [&](Var a, Var b) { return builder_.depth_of(a) < builder_.depth_of(b); });
  Var all;
  for (const Var condition : conditions) all = both(all, condition);
  return all;
}

Var IndexEmitter::both(Var a, Var b) {
  if (!a.valid() || !b.valid()) return a.valid() ? a : b;
  const int lanes = std::max(builder_.type(a).lanes, builder_.type(b).lanes);
  return builder_.alu(AluOp::And, {builder_.splat(a, lanes), builder_.splat(b, lanes)});
}

Var IndexEmitter::where(Var condition, Var value, Var other) {
  int lanes = 1;
  for (const Var v : {condition, value, other}) lanes = std::max(lanes, builder_.type(v).lanes);
  return builder_.alu(AluOp::Where, {builder_.splat(condition, lanes), builder_.splat(value, lanes),
                                     builder_.splat(other, lanes)});
}

// Clips positions that are out of bounds, so that only the source's memory is read. The front end
// raises IndexError for them.
Expr IndexEmitter::wrapped_position(Var index, const Dim& along) {
  const int lanes = builder_.type(index).lanes;
  const auto number = [&](const Expr& e) { return builder_.splat(emit(e), lanes); };
  const Expr size = this->size(along);
  index = builder_.cast(index, dtype_);
  const Var negative = builder_.alu(AluOp::Cmplt, {index, number(0)});
  index = where(negative, builder_.alu(AluOp::Add, {index, number(size)}), index);
  index =
      builder_.alu(AluOp::Max, {builder_.alu(AluOp::Min, {index, number(size - 1)}), number(0)});
  return bind(index, {0, along.bound() - 1});
}

IndexEmitter::Position IndexEmitter::checked_position(Var index, const Dim& along) {
  const DType from = builder_.type(index).dtype;
  RUNE_CHECK(builder_.type(index).lanes == 1, "a vector of positions");
  // A uint64 beyond int64, or a uint32 beyond int32, is negative here, so it is not valid.
  const DType dtype = size_of(from) == 8 ? DType::Int64 : dtype_;
  const auto number = [&](int64_t n) { return builder_.constant(Scalar::of(dtype, n)); };
  const Var size = builder_.cast(emit(this->size(along)), dtype);
  Var at = builder_.cast(index, dtype);
  if (is_signed(from)) {
    const Var wrapped = builder_.alu(AluOp::Add, {at, size});
    at = where(builder_.alu(AluOp::Cmplt, {at, number(0)}), wrapped, at);
  }
  // A number that is still negative is too large as an unsigned number.
  const DType no_sign = size_of(dtype) == 8 ? DType::Uint64 : DType::Uint32;
  const Var valid =
      builder_.alu(AluOp::Cmplt, {builder_.cast(at, no_sign), builder_.cast(size, no_sign)});
  return {position(at, along), valid};
}

}  // namespace rune::lower
