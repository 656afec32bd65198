// The error function of float32: x + x P(x^2) near 0, otherwise 1 - exp(-x - x Q(x)).
#include "lower/passes/decompose_kernels.h"
#include "lower/passes/decompose_rules.h"

namespace rune::lower::decomposition {

Value erf(Operands x) {
  static constexpr double kSmall[] = {7.99517511e-5, -0.000804953044, 0.00519239297, -0.0268557295,
                                      0.112836257,   -0.376126289,    0.128379166};
  static constexpr double kLarge[] = {1.12300122e-5, -0.000322794018, 0.0036424296, -0.0237620194,
                                      0.106236845,   0.635151327,     0.12864849};
  // Beyond 3.95 the result is 1.
  const Value unbounded = magnitude(x[0]);
  const Value size = where(less(3.95, unbounded), 3.95, unbounded);
  const Value minus = size * -1.0;
  // Both are -erf(|x|).
  const Value small = mulacc(minus, polynomial(size * size, kSmall), minus);
  const ScaledExp e = exp_scaled(mulacc(minus, polynomial(size, kLarge), minus));
  const Value large = mulacc(e.factor, power_of_two(e.power.integer, x[0].dtype()), -1.0);
  return flip_sign(where(less(size, 0.92), small, large), !bits(x[0]));
}

}  // namespace rune::lower::decomposition
