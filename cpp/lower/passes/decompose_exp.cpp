// Exponential functions: x = n ln 2 + r with |r| <= ln 2 / 2, e^x = 2^n e^r (Cody & Waite, Software
// Manual for the Elementary Functions, 1980), e^r by a minimax polynomial.
#include <cmath>

#include "lower/passes/decompose_kernels.h"
#include "lower/passes/decompose_rules.h"

namespace rune::lower::decomposition {

namespace {

struct ExpTable {
  double lowest, highest;    // beyond these, the result is 0 or infinity
  double lowest2, highest2;  // the same for exp2
  double ln2_high, ln2_low;
  std::vector<double> exp;    // of e^r
  std::vector<double> expm1;  // of (e^r - 1 - r) / r^2
  std::vector<double> exp2;   // of 2^r
};

const ExpTable& table_of(Value x) {
  static const ExpTable kFloat32{
      -104.0,
      89.0,
      -151.0,
      129.0,
      0.6931471824645996,
      -1.904654212e-9,
      {0.00138201378, 0.00836868584, 0.0416682735, 0.166665211, 0.49999994, 1.0, 1.0},
      {0.000199442686, 0.00139326847, 0.00833320804, 0.0416664891, 0.166666672, 0.5},
      {0.000153285815, 0.00133909867, 0.00961850118, 0.0555035956, 0.240226477, 0.693147182, 1.0}};
  static const ExpTable kFloat64{
      -746.0,
      710.0,
      -1076.0,
      1025.0,
      0.6931471805599453,
      2.3190468138462996e-17,
      {2.5000140095876603e-8, 2.7630392019051781e-7, 2.7557586851351965e-6, 2.4801492722382225e-5,
       0.00019841269505218158, 0.0013888888943964929, 0.0083333333334954813, 0.041666666666529011,
       0.1666666666666641, 0.50000000000000111, 1.0, 1.0},
      {2.0924476003339425e-9, 2.510912803822763e-8, 2.7557242662640425e-7, 2.7557243971292509e-6,
       2.4801587360656418e-5, 0.00019841269886336667, 0.0013888888888866796, 0.0083333333333215596,
       0.041666666666666699, 0.16666666666666677, 0.5},
      {4.4347389969627011e-10, 7.0738075220741311e-9, 1.0178199986491343e-7, 1.3215435148089841e-6,
       1.5252733491623385e-5, 0.00015403530457365884, 0.0013333558146776748, 0.0096181291075939316,
       0.05550410866482007, 0.2402265069591013, 0.69314718055994529, 1.0}};
  return x.dtype() == DType::Float32 ? kFloat32 : kFloat64;
}

struct Reduced {
  Rounded power;  // n
  Value rest;     // r
};

Reduced reduce(Value x) {
  constexpr double kLog2E = 1.4426950408889634;
  const ExpTable& t = table_of(x);
  const Rounded n = round_product(x, kLog2E);
  return {n, mulacc(n.number, -t.ln2_low, mulacc(n.number, -t.ln2_high, x))};
}

// e^r - 1
Value expm1_reduced(Value r) {
  return mulacc(r * r, polynomial(r, table_of(r).expm1), r);
}

}  // namespace

ScaledExp exp_scaled(Value x) {
  const Reduced reduced = reduce(x);
  return {polynomial(reduced.rest, table_of(x).exp), reduced.power};
}

Value expm1_in_range(Value x) {
  const Reduced reduced = reduce(x);
  const Value scale = power_of_two(reduced.power.integer, x.dtype());
  return mulacc(scale, expm1_reduced(reduced.rest), scale - 1.0);
}

Value exp2_sum(Value high, Value low) {
  const ExpTable& t = table_of(high);
  // Beyond these bounds, the result is 0 or infinity whatever the low part is. It must not become
  // NaN.
  const Value bounded = clamp(high, t.lowest2, t.highest2);
  const Rounded n = round_number(bounded);
  const Value r = (bounded - n.number) + low;
  return scale_by_power_of_two(polynomial(r, t.exp2), n);
}

Value exp(Operands x) {
  const ExpTable& t = table_of(x[0]);
  const ScaledExp e = exp_scaled(clamp(x[0], t.lowest, t.highest));
  return scale_by_power_of_two(e.factor, e.power);
}

Value exp2(Operands x) {
  const ExpTable& t = table_of(x[0]);
  const Value bounded = clamp(x[0], t.lowest2, t.highest2);
  const Rounded n = round_number(bounded);
  return scale_by_power_of_two(polynomial(bounded - n.number, t.exp2), n);
}

// 2^n (e^r - 1) + (2^n - 1), computed at half scale, because 2^n may overflow when the result does
// not.
Value expm1(Operands x) {
  const ExpTable& t = table_of(x[0]);
  const Format& f = format_of(x[0]);
  // Below this bound the result is -1. The power must stay normal.
  const Value bounded = clamp(x[0], -2.0 * f.mantissa, t.highest);
  const Reduced reduced = reduce(bounded);
  const Value half = power_of_two(reduced.power.integer - 1, x[0].dtype());
  const Value result = mulacc(half, expm1_reduced(reduced.rest), half - 0.5) * 2.0;
  // A tiny number is its own result. This keeps subnormals and -0.0.
  return where(less(magnitude(x[0]), std::ldexp(1.0, -f.mantissa - 2)), x[0], result);
}

}  // namespace rune::lower::decomposition
