// The vocabulary of decomposition rules: values with operators, which append instructions to the
// kernel that is being rewritten.
#pragma once

#include <initializer_list>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "lower/builder.h"
#include "types/capabilities.h"

namespace rune::lower::decomposition {

class Emitter;

// A value of the kernel under construction, a scalar or a vector. Operators on values append
// instructions.
struct Value {
  Emitter* emitter = nullptr;
  Var var;

  DType dtype() const;
  int lanes() const;
};

// A number. It takes its dtype and lanes from the value that it is combined with. Floats are
// rounded to the dtype; integers wrap.
struct Literal {
  std::variant<double, int64_t> number;
  Literal(double v) : number(v) {}                          // NOLINT: implicit by design
  Literal(int v) : number(int64_t{v}) {}                    // NOLINT
  Literal(int64_t v) : number(v) {}                         // NOLINT
  Literal(uint64_t v) : number(static_cast<int64_t>(v)) {}  // NOLINT
  Literal(uint32_t v) : number(static_cast<int64_t>(v)) {}  // NOLINT
};

struct Operand {
  std::variant<Value, Literal> content;
  template <class T>
    requires(!std::is_same_v<std::remove_cvref_t<T>, Operand>)
  Operand(T v) : content(wrap(v)) {}  // NOLINT: implicit by design

 private:
  static Value wrap(Value v) { return v; }
  static Literal wrap(Literal v) { return v; }
};

// Appends instructions to a builder. It replaces an operation that the target lacks by its rule at
// once, so a rule may use operations that have a rule themselves.
class Emitter {
 public:
  Emitter(Builder& builder, const Capabilities& caps) : builder_(builder), caps_(caps) {}

  Value value(Var var) { return {this, var}; }
  // The operation, native or by its rule. Throws UserError(Unsupported).
  Value alu(AluOp op, std::span<const Value> operands);
  // The operation itself, even if the target lacks it.
  Value raw(AluOp op, std::span<const Value> operands);
  Value raw(AluOp op, std::initializer_list<Value> operands) {
    return raw(op, std::span(operands.begin(), operands.size()));
  }
  Value constant(Literal number, DType dtype, int lanes);
  // The value of a constant that is equal in all lanes; nothing for other values.
  std::optional<Scalar> constant_of(Value v) const;
  Value cast(Value v, DType dtype) { return value(builder_.cast(v.var, dtype)); }
  Value bitcast(Value v, DType dtype) { return value(builder_.bitcast(v.var, dtype)); }
  Value shuffle(Value v, Ints lanes) { return value(builder_.shuffle(v.var, std::move(lanes))); }

  Value acc(Value initial) { return value(builder_.acc(initial.var)); }
  void assign(Value acc, Value v) { builder_.assign(acc.var, v.var); }
  void if_(Value condition);
  void end_if();
  // A loop of `iterations`.
  void range(int64_t iterations);
  void end_range();
  // Constants are shared within a scope. Callers that append a Range or If themselves must call
  // these.
  void enter_scope() { scopes_.emplace_back(); }
  void leave_scope() { scopes_.pop_back(); }

  Type type(Var v) const { return builder_.type(v); }
  const Capabilities& caps() const { return caps_; }

 private:
  using ConstantKey = std::tuple<DType, uint64_t, int>;  // dtype, bits, lanes

  Builder& builder_;
  const Capabilities& caps_;
  std::vector<std::map<ConstantKey, Var>> scopes_{1};
};

// Copies the instructions of a kernel, so that a pass can replace some of them or change their
// order.
class KernelCopy {
 public:
  KernelCopy(const Kernel& kernel, const Capabilities& caps)
      : kernel_(kernel),
        builder_({kernel.name, kernel.grid, kernel.local, {}}),
        emitter_(builder_, caps),
        values_(kernel.body.size()) {}
  KernelCopy(const KernelCopy&) = delete;  // the emitter refers to the builder

  Emitter& emitter() { return emitter_; }
  Builder& builder() { return builder_; }
  // The value of an instruction that has been copied or replaced.
  Value value(Var old) { return emitter_.value(values_[old.id]); }
  // Copies an instruction after its operands.
  void copy(Var old);
  // Gives an instruction this value instead of copying it.
  void replace(Var old, Value v) { values_[old.id] = v.var; }
  Kernel take() { return builder_.take(); }

 private:
  const Kernel& kernel_;
  Builder builder_;
  Emitter emitter_;
  std::vector<Var> values_;  // by old instruction
};

using Rule = Value (*)(std::span<const Value> operands);
// Null if there is none.
Rule rule_for(AluOp op, DType dtype);

inline DType Value::dtype() const {
  return emitter->type(var).dtype;
}
inline int Value::lanes() const {
  return emitter->type(var).lanes;
}

// Operations. At least one operand is a Value. Literals take its dtype and lanes.
Value apply(AluOp op, std::initializer_list<Operand> operands);
inline Value mulacc(Operand a, Operand b, Operand c) {
  return apply(AluOp::Mulacc, {a, b, c});
}
inline Value less(Operand a, Operand b) {
  return apply(AluOp::Cmplt, {a, b});
}
inline Value less_equal(Operand a, Operand b) {
  return apply(AluOp::Cmple, {a, b});
}
inline Value equal(Operand a, Operand b) {
  return apply(AluOp::Cmpeq, {a, b});
}
inline Value not_equal(Operand a, Operand b) {
  return apply(AluOp::Cmpne, {a, b});
}
inline Value is_nan(Value a) {
  return not_equal(a, a);
}
inline Value sqrt(Value a) {
  return apply(AluOp::Sqrt, {a});
}
inline Value trunc(Value a) {
  return apply(AluOp::Trunc, {a});
}
Value where(Value condition, Operand a, Operand b);

#define RUNE_VALUE_OPERATOR(symbol, Op)              \
  inline Value operator symbol(Value a, Value b) {   \
    return apply(AluOp::Op, {a, b});                 \
  }                                                  \
  inline Value operator symbol(Value a, Literal b) { \
    return apply(AluOp::Op, {a, b});                 \
  }                                                  \
  inline Value operator symbol(Literal a, Value b) { \
    return apply(AluOp::Op, {a, b});                 \
  }
RUNE_VALUE_OPERATOR(+, Add)
RUNE_VALUE_OPERATOR(-, Sub)
RUNE_VALUE_OPERATOR(*, Mul)
RUNE_VALUE_OPERATOR(/, Fdiv)
RUNE_VALUE_OPERATOR(&, And)
RUNE_VALUE_OPERATOR(|, Or)
RUNE_VALUE_OPERATOR(^, Xor)
#undef RUNE_VALUE_OPERATOR
inline Value operator!(Value a) {
  return apply(AluOp::Not, {a});
}

// Shifts by an amount that is known to be in [0, width).
Value operator<<(Value a, Operand amount);
Value operator>>(Value a, Operand amount);

Value cast(Value v, DType dtype);
// A constant of x's dtype and lanes.
Value constant_like(Value x, Literal number);
// c[0] x^(n-1) + ... + c[n-1], by Horner's rule.
Value polynomial(Value x, std::span<const double> coefficients);
// lo if x < lo, hi if x > hi, else x; NaN stays.
Value clamp(Value x, double lo, double hi);
// Whether a lane is true, as a scalar.
Value any(Value bools);

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// The layout of a binary float.
struct Format {
  DType dtype, integer, unsigned_integer;
  int mantissa, bias;
  int width() const { return bits_of(dtype); }
  uint64_t sign_mask() const { return uint64_t{1} << (width() - 1); }
  uint64_t infinity_bits() const { return static_cast<uint64_t>(2 * bias + 1) << mantissa; }
  double smallest_normal() const;
  // 1.5 * 2^mantissa. Adding it rounds a small number to an integer, which is then in the low bits.
  double rounder() const;
};
const Format& format_of(DType dtype);
inline const Format& format_of(Value v) {
  return format_of(v.dtype());
}

// A number as an unevaluated sum. |low| is at most about an ulp of high.
struct Sum {
  Value high, low;
};
// a + b: add() for |a| >= |b| (Dekker 1971), add_any() for any two (Knuth, TAOCP 4.2.2).
Sum add(Value a, Value b);
Sum add_any(Value a, Operand b);
// a * b exactly.
Sum product(Value a, Operand b);

// A float's bits as a signed integer, and back.
Value bits(Value x);
Value from_bits(Value integer);
Value magnitude_bits(Value x);
Value magnitude(Value x);
// x with its sign flipped where the sign bit of the integer is set.
Value flip_sign(Value x, Value integer);
// These two use only the low mantissa - 1 bits of the integer n.
// The float 2^n, for n in the range of normal exponents.
Value power_of_two(Value n, DType dtype);
// x * 2^n, for n of at most twice a normal exponent. It is rounded once if x * 2^(n / 2) is normal.
Value scale_by_power_of_two(Value x, Value n);

// The integer nearest to a number below 2^(mantissa - 1): as a float, and as an integer, of which
// only the low mantissa - 1 bits are right.
struct Rounded {
  Value number;
  Value integer;
};
Rounded round_number(Value x);
// The integer nearest to x * factor, where the product is rounded once.
Rounded round_product(Value x, double factor);
// x * 2^n, by the target's own operation if it has one.
Value scale_by_power_of_two(Value x, const Rounded& n);

}  // namespace rune::lower::decomposition
