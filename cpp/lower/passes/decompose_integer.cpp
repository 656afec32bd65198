// Decompositions of integer operations.
#include <bit>

#include "lower/passes/decompose_rules.h"

namespace rune::lower::decomposition {

namespace {

bool is_signed_integer(Value v) {
  return kind(v.dtype()) == Kind::Int;
}
int width_of(Value v) {
  return bits_of(v.dtype());
}

// The divisor as a number, if it is a constant with which no dividend traps or overflows.
std::optional<int64_t> safe_constant_divisor(Value b) {
  const std::optional<Scalar> c = b.emitter->constant_of(b);
  if (!c || c->bits() == 0) return std::nullopt;
  if (kind(b.dtype()) == Kind::Int && c->as_int64() == -1) return std::nullopt;
  return c->as_int64();
}

// k if the divisor is the constant 2^k and not the sign bit.
std::optional<int> log2_of_divisor(Value b) {
  const std::optional<int64_t> c = safe_constant_divisor(b);
  if (!c || *c <= 0 || !std::has_single_bit(static_cast<uint64_t>(*c))) return std::nullopt;
  return std::countr_zero(static_cast<uint64_t>(*c));
}

// b, or 1 where a raw division by b could trap.
Value safe_divisor(Value b) {
  if (safe_constant_divisor(b)) return b;
  Value unsafe = equal(b, 0);
  if (is_signed_integer(b)) unsafe = unsafe | equal(b, -1);
  return where(unsafe, 1, b);
}

// The result of division if safe_divisor has replaced the divisor: 0 for 0, and -a for -1.
Value repair_quotient(Value quotient, Value a, Value b) {
  if (safe_constant_divisor(b)) return quotient;
  if (is_signed_integer(b)) quotient = where(equal(b, -1), 0 - a, quotient);
  return where(equal(b, 0), 0, quotient);
}

// Whether the truncated quotient is greater than the floor by one.
Value floor_differs(Value remainder, Value b) {
  return not_equal(remainder, 0) & less(remainder ^ b, 0);
}

// Whether to divide in float: for vectors of up to 32 bits and a divisor that is not constant,
// because machines have no integer division of vectors.
bool divides_in_float(Value b) {
  if (b.lanes() == 1 || safe_constant_divisor(b)) return false;
  const Capabilities& caps = b.emitter->caps();
  return width_of(b) < 32    ? caps.has_arithmetic(DType::Float32)
         : width_of(b) == 32 ? caps.has_arithmetic(DType::Float64)
                             : false;
}

// The truncated quotient, by a float division. It is exact, because a quotient of w-bit integers is
// below the next integer by a relative distance of at least 2^-w, and the float has more bits than
// that. The result for b = 0 is arbitrary. The lowest number divided by -1 wraps.
Value quotient_in_float(Value a, Value b) {
  const DType wide = width_of(b) < 32 ? DType::Float32 : DType::Float64;
  const Format& f = format_of(wide);
  const Value quotient = trunc(cast(a, wide) / cast(b, wide));
  // Takes the integer from the low bits of a float, because a cast would have to handle NaN.
  return cast(bits(quotient + f.rounder()), a.dtype());
}

}  // namespace

Value divide_truncated(Operands x) {
  const auto [a, b] = std::pair(x[0], x[1]);
  if (divides_in_float(b)) return where(equal(b, 0), 0, quotient_in_float(a, b));
  return repair_quotient(a.emitter->raw(AluOp::Div, {a, safe_divisor(b)}), a, b);
}

Value remainder_truncated(Operands x) {
  const auto [a, b] = std::pair(x[0], x[1]);
  if (divides_in_float(b)) return where(equal(b, 0), 0, a - quotient_in_float(a, b) * b);
  // If the divisor is replaced by 1, the remainder is 0, as it must be.
  return a.emitter->raw(AluOp::Fmod, {a, safe_divisor(b)});
}

Value divide_floored(Operands x) {
  const auto [a, b] = std::pair(x[0], x[1]);
  if (const auto k = log2_of_divisor(b)) return a >> *k;
  if (!is_signed_integer(a)) return divide_truncated(x);
  if (divides_in_float(b)) {
    const Value quotient = quotient_in_float(a, b);
    const Value floored = where(floor_differs(a - quotient * b, b), quotient - 1, quotient);
    return where(equal(b, 0), 0, floored);
  }
  const Value divisor = safe_divisor(b);
  const Value quotient = a.emitter->raw(AluOp::Div, {a, divisor});
  const Value remainder = a - quotient * divisor;
  return repair_quotient(where(floor_differs(remainder, divisor), quotient - 1, quotient), a, b);
}

Value remainder_floored(Operands x) {
  const auto [a, b] = std::pair(x[0], x[1]);
  if (const auto k = log2_of_divisor(b)) return a & ((int64_t{1} << *k) - 1);
  const Value remainder = remainder_truncated(x);
  if (!is_signed_integer(a)) return remainder;
  return where(floor_differs(remainder, b), remainder + b, remainder);
}

namespace {

// Whether a shift amount is less than the width. As an unsigned number, a negative amount is too
// large as well.
Value in_range(Value amount) {
  static_assert(static_cast<int>(DType::Uint8) - static_cast<int>(DType::Int8) == 4 &&
                static_cast<int>(DType::Uint64) - static_cast<int>(DType::Int64) == 4);
  const Value number = is_signed_integer(amount)
                           ? amount.emitter->bitcast(
                                 amount, static_cast<DType>(static_cast<int>(amount.dtype()) + 4))
                           : amount;
  return less(number, width_of(amount));
}

bool is_constant_in_range(Value amount) {
  const std::optional<Scalar> c = amount.emitter->constant_of(amount);
  return c && c->as_int64() >= 0 && c->as_int64() < width_of(amount);
}

}  // namespace

Value shift_left(Operands x) {
  if (is_constant_in_range(x[1])) return x[0] << x[1];
  return where(in_range(x[1]), x[0] << (x[1] & (width_of(x[1]) - 1)), 0);
}

Value shift_right(Operands x) {
  if (is_constant_in_range(x[1])) return x[0] >> x[1];
  if (is_signed_integer(x[0])) return x[0] >> where(in_range(x[1]), x[1], width_of(x[1]) - 1);
  return where(in_range(x[1]), x[0] >> (x[1] & (width_of(x[1]) - 1)), 0);
}

namespace {

// base^exponent for an exponent known to be at least 1.
Value constant_power(Value base, uint64_t exponent) {
  std::optional<Value> result;
  Value factor = base;
  for (;; factor = factor * factor) {
    if (exponent & 1) result = result ? *result * factor : factor;
    exponent >>= 1;
    if (!exponent) return *result;
  }
}

}  // namespace

Value power_of_integers(Operands x) {
  const auto [base, exponent] = std::pair(x[0], x[1]);
  Emitter& e = *base.emitter;
  const bool is_signed = is_signed_integer(base);
  if (const auto c = e.constant_of(exponent); c && (!is_signed || c->as_int64() >= 0))
    return c->bits() == 0 ? constant_like(base, 1) : constant_power(base, c->as_uint64());
  const Value result = e.acc(constant_like(base, 1));
  const Value factor = e.acc(base), left = e.acc(exponent);
  // Each step handles one bit of the exponent. The sign bit is left out.
  e.range(width_of(base) - (is_signed ? 1 : 0));
  e.assign(result, where(equal(left & 1, 0), result, result * factor));
  e.assign(factor, factor * factor);
  e.assign(left, left >> 1);
  e.end_range();
  if (!is_signed) return result;
  const Value odd_sign = where(equal(exponent & 1, 0), 1, base);
  const Value inverse = where(equal(base, 1), base, where(equal(base, -1), odd_sign, 0));
  return where(less(exponent, 0), inverse, result);
}

}  // namespace rune::lower::decomposition
