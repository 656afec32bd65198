// Inverse trigonometric functions of float32.
#include "lower/passes/decompose_rules.h"

namespace rune::lower::decomposition {

namespace {

// pi and pi/2 as sums of two float32.
constexpr double kPiHigh = 3.1415927410125732, kPiLow = -8.742277657347586e-8;
constexpr double kHalfPiHigh = 1.5707963705062866, kHalfPiLow = -4.371138828673793e-8;

// For |x| <= 1/2, asin(|x|) = s + tail with s = |x|. For greater |x|, asin(|x|) = pi/2 - 2 (s +
// tail) with s = sqrt((1 - |x|) / 2).
struct Arc {
  Value size, is_large, s, tail;
};

Arc arc_of(Value x) {
  static constexpr double kAsin[] = {0.0422117822, 0.0241520964, 0.0454760417, 0.0749525204,
                                     0.166667536};
  const Value size = magnitude(x);
  const Value is_large = less(0.5, size);
  const Value z = where(is_large, mulacc(size, -0.5, 0.5), size * size);
  const Value s = where(is_large, sqrt(z), size);
  return {size, is_large, s, s * z * polynomial(z, kAsin)};
}

// atan(t) - t for 0 <= t <= 1.
Value atan_tail(Value t) {
  static constexpr double kAtan[] = {-0.00178769662, 0.0108881416,  -0.0311285686,
                                     0.0579080917,   -0.0840055346, 0.109511934,
                                     -0.142640531,   0.19998531,    -0.333332986};
  const Value z = t * t;
  return t * z * polynomial(z, kAtan);
}

}  // namespace

Value asin(Operands x) {
  const Arc arc = arc_of(x[0]);
  const Value high = mulacc(arc.s, -2.0, kHalfPiHigh);
  const Value lost = mulacc(arc.s, -2.0, kHalfPiHigh - high);
  const Value large = high + (mulacc(arc.tail, -2.0, kHalfPiLow) + lost);
  return flip_sign(where(arc.is_large, large, arc.s + arc.tail), bits(x[0]));
}

Value acos(Operands x) {
  const Arc arc = arc_of(x[0]);
  const Value near_one = (arc.s + arc.tail) * 2.0;
  const Value near_minus_one = mulacc(arc.s, -2.0, kPiHigh) + mulacc(arc.tail, -2.0, kPiLow);
  const Value large = where(less(x[0], 0.0), near_minus_one, near_one);
  const Value small = (kHalfPiHigh - x[0]) + (kHalfPiLow - flip_sign(arc.tail, bits(x[0])));
  return where(arc.is_large, large, small);
}

Value atan(Operands x) {
  const Value size = magnitude(x[0]);
  const Value is_large = less(1.0, size);
  const Value t = where(is_large, 1.0 / size, size);
  const Value tail = atan_tail(t);
  const Value large = (kHalfPiHigh - t) + (kHalfPiLow - tail);
  return flip_sign(where(is_large, large, t + tail), bits(x[0]));
}

// The angle is base + atan(t) or base - atan(t), where t is the smaller of |x|, |y| divided by the
// larger.
Value atan2(Operands operands) {
  const auto [y, x] = std::pair(operands[0], operands[1]);
  const Value ax = magnitude(x), ay = magnitude(y);
  const Value y_is_smaller = less(ay, ax);
  // If one is NaN, one of these is, and t.
  const Value low = where(y_is_smaller, ay, ax), high = where(y_is_smaller, ax, ay);
  const Value ratio = where(equal(low, high), 1.0, low / high);  // also 1 for two infinities
  const Value t = where(equal(high, 0.0), low, ratio);
  const Value steep = less(ax, ay);
  const Value leftward = less(bits(x), 0);
  const Value base_high =
      where(steep, kHalfPiHigh, where(leftward, kPiHigh, constant_like(x, 0.0)));
  const Value base_low = where(steep, kHalfPiLow, where(leftward, kPiLow, constant_like(x, 0.0)));
  const Value minus = steep ^ leftward;
  const Value tail = atan_tail(t);
  const Value signed_t = where(minus, 0.0 - t, t), signed_tail = where(minus, 0.0 - tail, tail);
  return flip_sign((base_high + signed_t) + (base_low + signed_tail), bits(y));
}

}  // namespace rune::lower::decomposition
