// Logarithms: x = 2^e m with m in [sqrt(1/2), sqrt(2)), log(m) by a polynomial in m - 1 (float32)
// or in s = f / (2 + f), f = m - 1 (float64, as in fdlibm's e_log.c).
#include <cmath>

#include "lower/passes/decompose_kernels.h"
#include "lower/passes/decompose_rules.h"

namespace rune::lower::decomposition {

namespace {

// A number as the sum of two numbers of the dtype.
struct Split {
  double high, low;
};
constexpr Split kLn2{0.6931471805599453, 2.3190468138462996e-17};
constexpr Split kLog2E{1.4426950408889634, 2.0355273740931033e-17};
constexpr Split kLog10E{0.4342944819032518, 1.098319650216765e-17};
constexpr Split kLog10Of2{0.3010299956639812, -2.8037281277851704e-18};

// Converts a split into two float64 parts to a split for the dtype.
Split split(const Split& c, DType dtype) {
  const double high = Scalar::of(dtype, c.high).as_double();
  return {high, (c.high - high) + c.low};
}

// log(1 + f) - f for 1 + f in [sqrt(1/2), sqrt(2)).
Value log1p_tail(Value f) {
  if (f.dtype() == DType::Float32) {
    static constexpr double kCoefficients[] = {-0.0763625652, 0.127621308,  -0.131596237,
                                               0.142015874,   -0.166234091, 0.200012416,
                                               -0.250008196,  0.333333313,  -0.5};
    return f * f * polynomial(f, kCoefficients);
  }
  static constexpr double kCoefficients[] = {
      0.14796376358753474, 0.15314008635583093, 0.18183565943496205, 0.22222198542235183,
      0.28571428742691496, 0.39999999999413266, 0.66666666666667351};
  const Value s = f / (f + 2.0);
  const Value z = s * s;
  const Value half_square = f * f * 0.5;
  return mulacc(s, mulacc(z, polynomial(z, kCoefficients), half_square), 0.0 - half_square);
}

// The integer e of x = 2^e m, with m in [sqrt(1/2), sqrt(2)), at the position of the exponent
// field.
Value exponent_bits(Value x) {
  const Format& f = format_of(x);
  const uint64_t root_half = Scalar::of(x.dtype(), std::sqrt(0.5)).bits();
  const uint64_t exponent_mask = ~((uint64_t{1} << f.mantissa) - 1);
  return (bits(x) - root_half) & exponent_mask;
}

// The result for positive finite x, and log's special cases for other x.
Value with_special_cases(Value result, Value x) {
  const Value finite = where(less(x, kInfinity), result, x);
  return where(less_equal(x, 0.0), where(equal(x, 0.0), -kInfinity, constant_like(x, kNan)),
               finite);
}

}  // namespace

LogParts split_exponent(Value x) {
  const Format& f = format_of(x);
  const double lift = f.mantissa + 1;
  const Value is_small = less(x, f.smallest_normal());
  const Value normal = where(is_small, x * std::ldexp(1.0, f.mantissa + 1), x);
  const Value exponent = exponent_bits(normal);
  const Value m = from_bits(bits(normal) - exponent);
  const Value power = cast(exponent >> f.mantissa, x.dtype());
  return {where(is_small, power - lift, power), m - 1.0};
}

Value log_of(const LogParts& parts) {
  const Split ln2 = split(kLn2, parts.fraction.dtype());
  const Value tail = mulacc(parts.exponent, ln2.low, log1p_tail(parts.fraction));
  return mulacc(parts.exponent, ln2.high, parts.fraction + tail);
}

Value log_of_sum(Value high, Value low, Value doublings) {
  const Split ln2 = split(kLn2, high.dtype());
  const Value exponent = exponent_bits(high);
  const Value power = cast(exponent >> format_of(high).mantissa, high.dtype()) + doublings;
  const Value fraction = from_bits(bits(high) - exponent) - 1.0;
  // log(high + low) = log(high) + low / high, to first order.
  const Value tail = mulacc(power, ln2.low, log1p_tail(fraction)) + low / high;
  return mulacc(power, ln2.high, fraction + tail);
}

Value log(Operands x) {
  return with_special_cases(log_of(split_exponent(x[0])), x[0]);
}

Value log2(Operands x) {
  const Split c = split(kLog2E, x[0].dtype());
  const LogParts parts = split_exponent(x[0]);
  const Value f = parts.fraction;
  const Value fraction = mulacc(f, c.high, mulacc(log1p_tail(f), c.high, f * c.low));
  return with_special_cases(parts.exponent + fraction, x[0]);
}

Value log10(Operands x) {
  const Split c = split(kLog10E, x[0].dtype()), log10_2 = split(kLog10Of2, x[0].dtype());
  const LogParts parts = split_exponent(x[0]);
  const Value f = parts.fraction;
  const Value low = mulacc(f, c.low, parts.exponent * log10_2.low);
  const Value fraction = mulacc(f, c.high, mulacc(log1p_tail(f), c.high, low));
  return with_special_cases(mulacc(parts.exponent, log10_2.high, fraction), x[0]);
}

// The exponent e of 1 + x scales both x and 1, so f = 2^-e x + (2^-e - 1) rounds once.
Value log1p(Operands x) {
  const Format& f = format_of(x[0]);
  const Value exponent = exponent_bits(x[0] + 1.0);
  // 2^(2 - e), normal for every e.
  const uint64_t four = Scalar::of(x[0].dtype(), 4.0).bits();
  const Value scale = from_bits(Literal(four) - exponent);
  const Value fraction = mulacc(x[0] * 0.25, scale, mulacc(scale, 0.25, -1.0));
  const Value power = cast(exponent >> f.mantissa, x[0].dtype());
  const Value result = log_of({power, fraction});
  const Value finite = where(less(x[0], kInfinity), result, x[0]);
  const Value edge = where(equal(x[0], -1.0), -kInfinity, constant_like(x[0], kNan));
  const Value valid = where(less_equal(x[0], -1.0), edge, finite);
  return where(less(magnitude(x[0]), std::ldexp(1.0, -f.mantissa - 2)), x[0], valid);
}

}  // namespace rune::lower::decomposition
