// Hyperbolic functions and their inverses for float32, and tanh also for float64.

#include "lower/passes/decompose_kernels.h"
#include "lower/passes/decompose_rules.h"

namespace rune::lower::decomposition {

namespace {

// x + x^3 P(x^2)
Value odd_polynomial(Value x, std::span<const double> coefficients) {
  const Value z = x * x;
  return mulacc(x * z, polynomial(z, coefficients), x);
}

// e^x / 2 for x >= 0. It is infinite only if the result of sinh and cosh is.
Value half_exp(Value x) {
  const ScaledExp e = exp_scaled(where(less(90.0, x), 90.0, x));
  return scale_by_power_of_two(e.factor * 0.5, e.power);
}

// log(a + sqrt(a^2 + c)) for a >= 0.6 with a^2 + c of at least 1. It takes the rounding errors of
// sum and root into account.
Value log_of_root_sum(Value a, double c) {
  // From here on c does not matter, and a^2 might overflow.
  const Value is_huge = less(4096.0, a);
  const Value bounded = where(is_huge, 1.0, a);
  const Sum square = product(bounded, bounded);
  const Sum sum = add_any(square.high, c);
  const Value root = sqrt(sum.high);
  const Value residue = mulacc(0.0 - root, root, sum.high) + (sum.low + square.low);
  const Value root_low = where(less(0.0, root), residue / (root + root), 0.0);
  const Value high = bounded + root;
  const Value larger = c > 0 ? root : bounded, smaller = c > 0 ? bounded : root;
  const Value low = (smaller - (high - larger)) + root_low;
  const Value result = log_of_sum(where(is_huge, a, high), where(is_huge, 0.0, low),
                                  where(is_huge, 1.0, constant_like(a, 0.0)));
  return where(less(a, kInfinity), result, a);
}

}  // namespace

Value sinh(Operands x) {
  static constexpr double kSinh[] = {2.78392554e-6, 0.000198426351, 0.00833331142, 0.166666672};
  const Value size = magnitude(x[0]);
  const Value half = half_exp(size);
  const Value large = half - 0.25 / half;
  return flip_sign(where(less(size, 1.0), odd_polynomial(size, kSinh), large), bits(x[0]));
}

Value cosh(Operands x) {
  const Value half = half_exp(magnitude(x[0]));
  return half + 0.25 / half;
}

namespace {

// With x = n ln 2 / 2 + r, t = tanh(r), which is a polynomial, and p = 2^n, the result is
//   (t (p + 1) + p - 1) / (t (p - 1) + p + 1), or, if it is above 1/2,
//   1 - 2 (1 - t) / (t (p - 1) + p + 1).
// There is a single division, which takes half as long as everything else.
Value tanh_of_float32(Value size) {
  // With the shift, n is 0 up to 0.26, and 1 up to 0.606. Beyond that, results are above 1/2.
  constexpr double kPerHalfLn2 = 2.885390082, kShift = -0.25, kHalfLn2 = 0.34657359;
  static constexpr double kTanh[] = {-0.0511932565, 0.133224424, -0.333332111};
  const Value bounded = where(less(10.0, size), 10.0, size);
  const Rounded n = round_number(mulacc(bounded, kPerHalfLn2, kShift));
  const Value p = power_of_two(n.integer, size.dtype());
  const Value t = odd_polynomial(mulacc(n.number, -kHalfLn2, bounded), kTanh);
  const Value below = p - 1.0, above = p + 1.0;
  const Value is_small = less(n.number, 1.5);
  const Value top = where(is_small, mulacc(t, above, below), mulacc(t, 2.0, -2.0));
  const Value ratio = top / mulacc(t, below, above);
  return where(is_small, ratio, ratio + 1.0);
}

// Near 0, it is m / (m + 2) with m = e^2x - 1, taking the rounding errors of sum and quotient into
// account. There is a single division, which takes as long as everything else.
Value tanh_of_float64(Value size) {
  const Value bounded = where(less(20.0, size), 20.0, size);
  const Value m = expm1_in_range(bounded + bounded);
  const Value sum = m + 2.0;
  const Value sum_low = m - (sum - 2.0);
  const Value inverse = 1.0 / sum;
  const Value ratio = m * inverse;
  const Value residue = mulacc(0.0 - ratio, sum_low, mulacc(0.0 - ratio, sum, m));
  // Numbers that are too small for a residue are their own result.
  const Value small = where(less(size, 0x1p-64), size, ratio + residue * inverse);
  return where(less(size, 0.55), small, 1.0 - 2.0 * inverse);
}

}  // namespace

Value tanh(Operands x) {
  const Value size = magnitude(x[0]);
  const Value result =
      x[0].dtype() == DType::Float32 ? tanh_of_float32(size) : tanh_of_float64(size);
  return flip_sign(result, bits(x[0]));
}

Value asinh(Operands x) {
  static constexpr double kAsinh[] = {0.00706866616, -0.0182605982, 0.0294877049,
                                      -0.0445404015, 0.074994497,   -0.166666567};
  const Value size = magnitude(x[0]);
  const Value is_small = less(size, 0.6);
  const Value large = log_of_root_sum(size, 1.0);
  return flip_sign(where(is_small, odd_polynomial(size, kAsinh), large), bits(x[0]));
}

Value acosh(Operands x) {
  static constexpr double kAcosh[] = {-0.00037673628, 0.00171642168, -0.0055300938, 0.0187437963,
                                      -0.0833330825};
  const Value t = x[0] - 1.0;
  const Value root = sqrt(t + t);
  const Value near_one = mulacc(root * t, polynomial(t, kAcosh), root);
  return where(less(t, 0.6), near_one, log_of_root_sum(x[0], -1.0));
}

// log((1 + x) / (1 - x)) / 2. It takes the rounding errors of sum and quotient into account.
Value atanh(Operands x) {
  static constexpr double kAtanh[] = {0.184671402, 0.0173106287, 0.105146013, 0.109306812,
                                      0.142977402, 0.199996233,  0.333333373};
  const Value size = magnitude(x[0]);
  const Value top = size + 1.0, bottom = 1.0 - size;
  const Value top_low = size - (top - 1.0);
  const Value ratio = top / bottom;
  const Value ratio_low = (mulacc(0.0 - ratio, bottom, top) + top_low) / bottom;
  const Value large = log_of_sum(ratio, ratio_low, constant_like(size, 0.0)) * 0.5;
  const Value edge = where(equal(size, 1.0), kInfinity, constant_like(size, kNan));
  const Value valid = where(less(size, 1.0), large, edge);
  return flip_sign(where(less(size, 0.5), odd_polynomial(size, kAtanh), valid), bits(x[0]));
}

}  // namespace rune::lower::decomposition
