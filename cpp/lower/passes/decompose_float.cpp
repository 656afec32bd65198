// Decompositions of float scaling and of floor division.

#include "lower/passes/decompose_rules.h"

namespace rune::lower::decomposition {

Value ldexp(Operands x) {
  const Format& f = format_of(x[0]);
  // 2^n is a normal number only for lowest <= n <= bias. A smaller exponent is split such that,
  // unless the result is zero, only the last product rounds, because all before it are normal
  // numbers.
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

// A floor division and its remainder, before NumPy's corrections of sign and zero.
struct Division {
  Value remainder;  // of the truncated quotient
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
