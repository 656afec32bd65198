// Decompositions of float operations on bits, of rounding, of choices and of division.
#include <cmath>
#include <limits>

#include "lower/passes/decompose_rules.h"

namespace rune::lower::decomposition {

Value negate(Operands x) {
  return from_bits(bits(x[0]) ^ format_of(x[0]).sign_mask());
}
Value absolute(Operands x) {
  return magnitude(x[0]);
}
Value copy_sign(Operands x) {
  return from_bits(magnitude_bits(x[0]) | sign_bits(x[1]));
}
// Adding 0 turns -0.0 into 0 and keeps NaN.
Value sign(Operands x) {
  return where(less(0.0, x[0]), 1.0, where(less(x[0], 0.0), -1.0, x[0] + 0.0));
}

Value test_nan(Operands x) {
  return less(format_of(x[0]).infinity_bits(), magnitude_bits(x[0]));
}
Value test_infinite(Operands x) {
  return equal(magnitude_bits(x[0]), format_of(x[0]).infinity_bits());
}
Value test_finite(Operands x) {
  return less(magnitude_bits(x[0]), format_of(x[0]).infinity_bits());
}
Value test_sign(Operands x) {
  return less(bits(x[0]), 0);
}

namespace {

// Comparisons do not order 0.0 and -0.0: of equal numbers the bits decide, combined by And for the
// larger, by Or for the smaller. Right if neither is NaN.
Value larger(Value a, Value b) {
  const Value unequal = where(less(a, b), b, a);
  return where(equal(a, b), from_bits(bits(a) & bits(b)), unequal);
}
Value smaller(Value a, Value b) {
  const Value unequal = where(less(b, a), b, a);
  return where(equal(a, b), from_bits(bits(a) | bits(b)), unequal);
}

}  // namespace

Value maximum(Operands x) {
  const Value number = larger(x[0], x[1]);
  return where(is_nan(x[1]), x[1], number);
}
Value minimum(Operands x) {
  const Value number = smaller(x[0], x[1]);
  return where(is_nan(x[1]), x[1], number);
}
Value larger_number(Operands x) {
  const Value number = larger(x[0], x[1]);
  return where(is_nan(x[0]), x[1], number);
}
Value smaller_number(Operands x) {
  const Value number = smaller(x[0], x[1]);
  return where(is_nan(x[0]), x[1], number);
}

// Numbers of at least 2^mantissa are integers; adding that to smaller ones rounds them.
Value round_to_even(Operands x) {
  const Value size = magnitude(x[0]);
  const double integers_from = std::ldexp(1.0, format_of(x[0]).mantissa);
  const Value rounded = (size + integers_from) - integers_from;
  return where(less(size, integers_from), flip_sign(rounded, bits(x[0])), x[0]);
}
Value round_down(Operands x) {
  const Value rounded = apply(AluOp::Rint, {x[0]});
  // 1 - 1 must not lose the sign of -0.0, hence the copied sign.
  return apply(AluOp::Copysign, {where(less(x[0], rounded), rounded - 1.0, rounded), x[0]});
}
Value round_up(Operands x) {
  const Value rounded = apply(AluOp::Rint, {x[0]});
  return apply(AluOp::Copysign, {where(less(rounded, x[0]), rounded + 1.0, rounded), x[0]});
}
Value round_to_zero(Operands x) {
  return apply(AluOp::Copysign, {apply(AluOp::Floor, {magnitude(x[0])}), x[0]});
}

Value reciprocal(Operands x) {
  return 1.0 / x[0];
}

Value ldexp(Operands x) {
  const Format& f = format_of(x[0]);
  // 2^n is a number for lowest <= n <= bias only. A smaller exponent is split so that what comes
  // before the last product is a normal number if the result is not zero: that one rounds alone.
  const int lowest = 1 - f.bias;
  Value result = x[0], n = clamp(x[1], -4.0 * f.bias, 4.0 * f.bias);
  const auto scale = [&](Value by) {
    result = result * power_of_two(cast(by, f.integer), x[0].dtype());
    n = n - by;
  };
  for (int i = 0; i < 2; ++i)
    scale(where(less(n, lowest), lowest + f.mantissa + 1, clamp(n, lowest, f.bias)));
  scale(clamp(n, lowest, f.bias));
  return result;
}

namespace {

// One step of the long division: subtracts from `a` the largest multiple of b * 2^j that it holds,
// with j chosen so that the multiple is exact. a >= 2^mantissa * b > 0.
Value reduce_once(Value a, Value b) {
  const Format& f = format_of(a);
  // A denormal divisor has no exponent of its own: lifted, it is a multiple of itself all the same.
  const Value normal = where(less(b, f.smallest_normal()), b * std::ldexp(1.0, f.mantissa + 1), b);
  const Value distance = (bits(a) >> f.mantissa) - (bits(normal) >> f.mantissa) - (f.mantissa - 1);
  const Value multiple = scale_by_power_of_two(normal, distance);
  const Value count = trunc(a / multiple);
  const Value rest = mulacc(0.0 - count, multiple, a);
  return where(less(rest, 0.0), rest + multiple, rest);
}

}  // namespace

Value fmod(Operands x) {
  const Format& f = format_of(x[0]);
  Emitter& e = *x[0].emitter;
  const Value a = magnitude(x[0]), b = magnitude(x[1]);
  // While a / b has fewer bits than the mantissa, its truncation is right or one too large, and the
  // remainder is exact either way.
  const auto small_remainder = [&](Value dividend) {
    const Value rest = mulacc(0.0 - trunc(dividend / b), b, dividend);
    return where(less(rest, 0.0), rest + b, rest);
  };
  const double limit = std::ldexp(1.0, f.mantissa - 1);
  const double infinity = std::numeric_limits<double>::infinity();
  const Value regular = less(0.0, b) & less(a, infinity);
  const Value result = e.acc(small_remainder(a));
  const Value large = less_equal(limit, a / b) & regular;
  e.if_(any_greater(where(large, constant_like(bits(a), 1), 0), 0));
  const Value left = e.acc(a);
  // Each step takes mantissa - 1 bits of a quotient of at most 2 * bias + mantissa bits.
  e.range((2 * f.bias + f.mantissa) / (f.mantissa - 1) + 1);
  e.assign(left, where(less_equal(limit, left / b) & regular, reduce_once(left, b), left));
  e.end_range();
  e.assign(result, where(large, small_remainder(left), result));
  e.end_if();
  // By infinity the dividend itself; its sign in every case.
  const Value rest = where(equal(b, infinity), a, result);
  const Value valid = where(regular, rest, std::numeric_limits<double>::quiet_NaN());
  return flip_sign(valid, bits(x[0]));
}

namespace {

// The floor division and its remainder before NumPy's corrections of sign and zero.
struct Division {
  Value remainder;  // of truncation
  Value adjusted;   // whether the floor is one less
};

Division divide(Value a, Value b) {
  const Value remainder = apply(AluOp::Fmod, {a, b});
  const Value signs_differ = less(b, 0.0) ^ less(remainder, 0.0);
  return {remainder, not_equal(remainder, 0.0) & signs_differ};
}

}  // namespace

Value floor_divide(Operands x) {
  const auto [a, b] = std::pair(x[0], x[1]);
  const Division d = divide(a, b);
  const Value exact = (a - d.remainder) / b;
  const Value quotient = where(d.adjusted, exact - 1.0, exact);
  const Value floored = apply(AluOp::Floor, {quotient});
  const Value nearest = where(less(0.5, quotient - floored), floored + 1.0, floored);
  const Value ratio = a / b;
  const Value zero = apply(AluOp::Copysign, {constant_like(a, 0.0), ratio});
  return where(equal(b, 0.0), ratio, where(equal(quotient, 0.0), zero, nearest));
}

Value floor_remainder(Operands x) {
  const auto [a, b] = std::pair(x[0], x[1]);
  const Division d = divide(a, b);
  const Value moved = where(d.adjusted, d.remainder + b, d.remainder);
  const Value zero = apply(AluOp::Copysign, {constant_like(a, 0.0), b});
  return where(equal(d.remainder, 0.0), zero, moved);
}

}  // namespace rune::lower::decomposition
