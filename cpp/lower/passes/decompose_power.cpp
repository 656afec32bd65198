// Power, cube root and hypotenuse.
#include <cmath>

#include "lower/passes/decompose_kernels.h"
#include "lower/passes/decompose_rules.h"

namespace rune::lower::decomposition {

namespace {

// log2(x) to about 36 bits for positive finite x, by log(1 + f) = 2 q + 2/3 q^3 + ..., q = f / (2 +
// f).
Sum log2_sum(Value x) {
  static constexpr double kTail[] = {0.234193906, 0.285470963,
                                     0.400001526};  // of (log(1+f)/q - 2 - 2/3 z)/z^2
  constexpr double kTwoThirds = 0.6666666865348816, kTwoThirdsLow = -1.9868215e-8;
  constexpr double kLog2E = 1.4426950216293335, kLog2ELow = 1.925963033500011e-8;
  const LogParts parts = split_exponent(x);
  const Value f = parts.fraction;
  const Value t = f + 2.0;
  const Value t_low = f - (t - 2.0);
  const Value inverse = 1.0 / t;
  const Value q = f * inverse;
  const Value q_low = mulacc(0.0 - q, t_low, mulacc(0.0 - q, t, f)) * inverse;
  const Sum z = product(q, q);
  const Value z_low = mulacc(q + q, q_low, z.low);
  const Sum cube = product(q, z.high);
  const Value cube_low = cube.low + mulacc(q, z_low, q_low * z.high);
  const Sum term = product(cube.high, kTwoThirds);
  const Value factor_low = mulacc(z.high, polynomial(z.high, kTail), kTwoThirdsLow);
  const Value term_low = term.low + mulacc(cube_low, kTwoThirds, cube.high * factor_low);
  const Sum log = add(q + q, term.high);
  const Value log_low = log.low + mulacc(q_low, 2.0, term_low);
  const Sum scaled = product(log.high, kLog2E);
  const Value scaled_low = mulacc(log_low, kLog2E, mulacc(log.high, kLog2ELow, scaled.low));
  const Sum sum = add(parts.exponent, scaled.high);
  const Value exact_sum_low = sum.low + scaled_low;
  return add(sum.high, exact_sum_low);
}

// x^c for exponents for which it is a product or a root. Nothing for others.
std::optional<Value> constant_power(Value x, double c) {
  if (c == 0) return constant_like(x, 1.0);
  if (c == 1) return x;
  if (c == 2) return x * x;
  if (c == 3) return x * x * x;
  if (c == -1) return 1.0 / x;
  // Adding 0 makes -0.0 positive, because its power is.
  if (c == 0.5) return where(equal(x, -kInfinity), kInfinity, sqrt(x + 0.0));
  return std::nullopt;
}

}  // namespace

// x^y = 2^(y log2 x), with C's special cases (Annex F).
Value pow(Operands operands) {
  const auto [x, y] = std::pair(operands[0], operands[1]);
  if (const auto c = x.emitter->constant_of(y))
    if (const auto power = constant_power(x, c->as_double())) return *power;
  const Value size = magnitude(x);
  const Sum log = log2_sum(size);
  const Sum exponent = product(y, log.high);
  // If the exponent overflows, its low part is NaN. The result is then 0 or infinity without it.
  const Value low =
      where(less(magnitude(exponent.high), 1024.0), mulacc(y, log.low, exponent.low), 0.0);
  const Value power = exp2_sum(exponent.high, low);
  const Value is_zero = equal(size, 0.0);
  const Value is_edge = is_zero | equal(size, kInfinity);
  const Value edge = where(is_zero ^ less(y, 0.0), 0.0, constant_like(size, kInfinity));
  const Value regular = where(equal(size, 1.0), 1.0, where(is_edge, edge, power));
  const Value is_whole = equal(apply(AluOp::Rint, {y}), y);
  const Value half = y * 0.5;
  const Value is_odd = is_whole & not_equal(apply(AluOp::Rint, {half}), half);
  const Value with_sign = flip_sign(regular, where(is_odd, bits(x), 0));
  const Value invalid = less(x, 0.0) & !is_whole & less(-kInfinity, x);
  const Value valid = where(invalid, kNan, with_sign);
  const Value propagated = where(is_nan(x) | is_nan(y), x + y, valid);
  return where(equal(x, 1.0) | equal(y, 0.0), 1.0, propagated);
}

// |x| = 8^k m with m in [1, 8). A polynomial estimates the root of m, and one Newton step, with the
// exact residue, improves it.
Value cbrt(Operands x) {
  static constexpr double kRoot[] = {-0.0106037483, 0.0860905275, -0.300609916, 0.718152523,
                                     0.506979823};
  const Format& f = format_of(x[0]);
  const Value size = magnitude(x[0]);
  const Value is_denormal = less(size, f.smallest_normal());
  const Value normal = where(is_denormal, size * std::ldexp(1.0, 24), size);
  // The exponent plus 129, which is a multiple of 3. 171 / 512 is near enough to 1/3.
  const Value exponent = (bits(normal) >> f.mantissa) + 2;
  const Value third = (exponent * 171) >> 9;
  const Value rest = exponent - third * 3;
  const uint64_t one = Scalar::of(f.dtype, 1.0).bits();
  const Value unit = from_bits((bits(normal) & ((int64_t{1} << f.mantissa) - 1)) | one);
  const Value is_second = equal(rest, 1), is_third = equal(rest, 2);
  const Value scale = where(is_third, 1.5874010519681996,
                            where(is_second, 1.2599210498948732, constant_like(unit, 1.0)));
  const Value m = from_bits(bits(unit) + (rest << f.mantissa));
  const Value root = polynomial(unit, kRoot) * scale;
  const Sum square = product(root, root);
  const Value residue = mulacc(root, square.low, mulacc(root, square.high, 0.0 - m));
  const Value refined = root - residue / (square.high * 3.0);
  const Value shift = where(is_denormal, third - (43 + 8), third - 43);
  const Value result = refined * power_of_two(shift, f.dtype);
  const Value regular = less(0.0, size) & less(size, kInfinity);
  return where(regular, flip_sign(result, bits(x[0])), x[0]);
}

// Scales by a power of two, so that squares neither overflow nor underflow.
Value hypot(Operands x) {
  const Value a = magnitude(x[0]), b = magnitude(x[1]);
  const Value a_is_smaller = less(a, b);
  // If one is NaN, one of these is.
  const Value high = where(a_is_smaller, b, a), low = where(a_is_smaller, a, b);
  const int unit = x[0].dtype() == DType::Float32 ? 20 : 160;
  const Value is_large = less(std::ldexp(1.0, 3 * unit), high);
  const Value is_small = less(high, std::ldexp(1.0, -2 * unit));
  const auto choose = [&](int large, int small) {
    return where(is_large, std::ldexp(1.0, large),
                 where(is_small, std::ldexp(1.0, small), constant_like(high, 1.0)));
  };
  const Value scale = choose(-5 * unit, 5 * unit), unscale = choose(5 * unit, -5 * unit);
  const Value h = high * scale, l = low * scale;
  const Value result = sqrt(mulacc(h, h, l * l)) * unscale;
  return where(equal(a, kInfinity) | equal(b, kInfinity), kInfinity, result);
}

}  // namespace rune::lower::decomposition
