// Sine, cosine and tangent: |x| = n pi/2 + r with |r| <= pi/4, by a three-part pi/2 (Cody & Waite)
// for moderate x and by integer arithmetic on the bits of 2/pi (Payne & Hanek, ACM SIGNUM
// Newsletter 18, 1983) for huge x. The latter runs only if a lane needs it.
#include <cmath>

#include "lower/passes/decompose_rules.h"

namespace rune::lower::decomposition {

namespace {

// 2/pi = sum of kTwoOverPi[i] * 2^(-32 (i + 1)).
constexpr uint32_t kTwoOverPi[] = {
    0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab, 0xdebbc561,
    0xb7246e3a, 0x424dd2e0, 0x06492eea, 0x09d1921c, 0xfe1deb1c, 0xb129a73e, 0xe88235f5, 0x2ebb4484,
    0xe99c7026, 0xb45f7e41, 0x3991d639, 0x835339f4, 0x9c845f8b, 0xbdf9283b, 0x1ff897ff, 0xde05980f,
    0xef2f118b, 0x5a0a6d1f, 0x6d367ecf, 0x27cb09b7, 0x4f463f66, 0x9e5fea2d, 0x7527bac7, 0xebe5f17b,
    0x3d0739f7, 0x8a5292ea, 0x6bfb5fb1, 0x1f8d5d08, 0x56033046, 0xfc7b6bab, 0xf0cfbc20, 0x9af4361d};

struct TrigTable {
  double moderate;          // the greatest |x| for which the three-part reduction is exact enough
  double pi_2[3];           // pi/2 in parts
  std::vector<double> sin;  // of (sin(r) / r - 1) / r^2, in r^2
  std::vector<double> cos;  // of (cos(r) - 1 + r^2/2) / r^4, in r^2
};

const TrigTable& trig_table_of(Value x) {
  static const TrigTable kFloat32{
      131072.0,
      {1.5707963705062866, -4.371138828673793e-8, -1.7151245100058819e-15},
      {-0.000195179091, 0.00833218731, -0.166666552},
      {2.44314251e-5, -0.00138873048, 0.0416666456}};
  static const TrigTable kFloat64{
      1073741824.0,
      {1.5707963267948966, 6.123233995736766e-17, -1.497384905065873e-33},
      {1.5896788002871274e-10, -2.5050757968540273e-8, 2.7557313690855392e-6,
       -0.00019841269829804235, 0.0083333333333224079, -0.16666666666666632},
      {-1.1359640179123516e-11, 2.0875723114429047e-9, -2.7557314351059442e-7,
       2.4801587289477312e-5, -0.0013888888888874116, 0.041666666666666602}};
  return x.dtype() == DType::Float32 ? kFloat32 : kFloat64;
}

// |x| = quadrant pi/2 + rest + low, with |rest| <= pi/4 and low of about the size of rest's
// rounding error. Only the low two bits of the quadrant matter.
struct Angle {
  Value quadrant;  // an integer as wide as the float
  Value rest, low;
};

// The rounding error of `sum`, which is a * x + y rounded once (Boldo & Muller, ARITH 2005).
Value mulacc_error(Value a, double x, Value y, Value sum) {
  const Sum exact = product(a, x);
  const Sum low = add_any(y, exact.low);
  const Sum high = add_any(exact.high, low.high);
  return ((high.high - sum) + high.low) + low.low;
}

Angle reduce_moderate(Value size) {
  const TrigTable& t = trig_table_of(size);
  const Rounded n = round_product(size, 0.6366197723675814);
  // The first difference is exact.
  const Value first = mulacc(n.number, -t.pi_2[0], size);
  const Value second = mulacc(n.number, -t.pi_2[1], first);
  const Value rest = mulacc(n.number, -t.pi_2[2], second);
  const Value low = mulacc_error(n.number, -t.pi_2[1], first, second) +
                    mulacc(n.number, -t.pi_2[2], second - rest);
  return {n.integer, rest, low};
}

// `count` words of 32 bits, as uint64, of the bits of 2/pi preceded by `leading` zeros. They begin
// at bit number `start`, a uint64 of at most last_start.
std::vector<Value> window(Value start, int last_start, int count, int leading) {
  Emitter& e = *start.emitter;
  const int needed = last_start / 32 + count + 1;
  const auto word = [&](int i) {
    // 2/pi shifted right by `leading` bits, less than 32.
    const uint32_t left = i > 0 && i <= 40 ? kTwoOverPi[i - 1] : 0,
                   here = i < 40 ? kTwoOverPi[i] : 0;
    return leading == 0 ? here : (left << (32 - leading)) | (here >> leading);
  };
  std::vector<Value> words;
  for (int i = 0; i < needed; ++i)
    words.push_back(e.constant(Literal(word(i)), DType::Uint64, start.lanes()));
  // A barrel shifter by words: for each bit of start / 32 that is set, the window moves on by that
  // power of two.
  int step = 1;
  while (step * 2 * 32 <= last_start) step *= 2;
  for (; step >= 1; step /= 2) {
    const Value moves = not_equal(start & (32 * step), 0);
    // A word past the end is never selected.
    const int kept = std::min<int>(words.size(), count + 1 + (step - 1));
    for (int i = 0; i < kept; ++i)
      if (i + step < static_cast<int>(words.size()))
        words[i] = where(moves, words[i + step], words[i]);
    words.erase(words.begin() + kept, words.end());
  }
  const Value shift = start & 31;
  std::vector<Value> result;
  for (int i = 0; i < count; ++i)
    result.push_back(((((words[i] << 32) | words[i + 1]) << shift) >> 32) & 0xffffffffu);
  return result;
}

// |x| * 2/pi mod 4 in fixed point: `count` limbs of 32 bits, the first of them with weight 2^-30.
std::vector<Value> multiply(std::span<const Value> factor, std::span<const Value> words) {
  // factor[0] is the lowest limb, words[0] the highest. Computes the product mod 2^(32 count),
  // whose low limbs have an error in the last place.
  const int count = static_cast<int>(words.size());
  std::vector<Value> result;
  std::optional<Value> carry;
  for (int place = count - 1; place >= 0; --place) {
    Value sum = words[place] * factor[0];
    Value high = sum >> 32;
    sum = sum & 0xffffffffu;
    for (size_t k = 1; k < factor.size() && place + static_cast<int>(k) < count; ++k) {
      const Value product = words[place + k] * factor[k];
      sum = sum + (product & 0xffffffffu);
      high = high + (product >> 32);
    }
    if (carry) sum = sum + *carry;
    carry = high + (sum >> 32);
    result.insert(result.begin(), sum & 0xffffffffu);
  }
  return result;
}

// Reduces |x| from the table's bound on. The result for smaller x, infinities and NaN is arbitrary.
Angle reduce_huge(Value size) {
  const Format& f = format_of(size);
  const bool narrow = f.dtype == DType::Float32;
  const Value raw = size.emitter->bitcast(size, f.unsigned_integer);
  const uint64_t hidden = uint64_t{1} << f.mantissa;
  const Value mantissa = cast((raw & (hidden - 1)) | hidden, DType::Uint64);
  // size = mantissa * 2^power. Bits of 2/pi with weight of 4 and more, times the mantissa, are
  // multiples of 4: the window starts at weight 2^(1 - power), `leading` bits before 2/pi if power
  // is negative.
  const int leading = narrow ? 8 : 24;
  const Value power = cast(raw >> f.mantissa, DType::Uint64) - (f.bias + f.mantissa);
  const Value start = power + (leading - 2);
  const int last_start = f.bias - f.mantissa + leading - 2;
  const std::vector<Value> words = window(start, last_start, narrow ? 3 : 6, leading);
  std::vector<Value> factor{mantissa & 0xffffffffu};
  if (!narrow) factor.push_back(mantissa >> 32);
  const std::vector<Value> limbs = multiply(factor, words);
  const Value top = (limbs[0] << 32) | limbs[1];
  const uint64_t half = uint64_t{1} << 61;
  const Value quadrant = cast((top + half) >> 62, f.integer);
  Emitter& e = *size.emitter;
  // The leading bits are exact as a float. The following bits and the error of pi/2 are added to
  // them.
  const Value fraction = e.bitcast(top << 2, DType::Int64);
  const Value leading_bits = fraction & ~((int64_t{1} << (63 - f.mantissa)) - 1);
  const Value trailing_bits = fraction - leading_bits;
  Value rest = cast(trailing_bits, f.dtype);
  const Value rest_low = cast(trailing_bits - cast(rest, DType::Int64), f.dtype);
  if (!narrow) {
    const Value next = (limbs[2] << 32) | limbs[3];
    rest =
        rest + (cast(next >> 62, f.dtype) + cast((next << 2) >> 1, f.dtype) * std::ldexp(1.0, -63));
  }
  const double unit = std::ldexp(1.0, -64);
  const double pi_2 = trig_table_of(size).pi_2[0], pi_2_low = trig_table_of(size).pi_2[1];
  const Value first = cast(leading_bits, f.dtype) * unit;
  const Value second = rest * unit;
  const Value product = first * pi_2, second_product = second * pi_2;
  const Value sum = mulacc(first, pi_2, mulacc(first, pi_2_low, second_product));
  // The rounding errors of both products, and the parts of the angle that are not in them.
  Value low = mulacc(first, pi_2_low, mulacc(second, pi_2_low, rest_low * unit * pi_2));
  low = low + mulacc(second, pi_2, 0.0 - second_product);
  low = low + mulacc(first, pi_2, 0.0 - product);
  // Near a multiple of pi/2 both products cancel, and much of the angle is in the low part.
  const Sum angle = add(sum, ((product - sum) + second_product) + low);
  return {quadrant, angle.high, angle.low};
}

struct SinCos {
  Value sin, cos;
};

SinCos sin_cos_of_rest(Value r) {
  const TrigTable& t = trig_table_of(r);
  const Value z = r * r;
  const Value sin = mulacc(r * z, polynomial(z, t.sin), r);
  const Value cos = mulacc(z * z, polynomial(z, t.cos), mulacc(z, -0.5, 1.0));
  return {sin, cos};
}

// sin(r) / cos(r), or cos(r) / sin(r) where `inverted`. It takes the rounding errors of all three
// and of the angle into account.
Value tan_of_rest(const Angle& angle, Value inverted) {
  const Value r = angle.rest;
  const TrigTable& t = trig_table_of(r);
  const Value z = r * r;
  const Sum sin = add(r, mulacc(r * z, polynomial(z, t.sin), angle.low));
  const Value half = mulacc(z, -0.5, 1.0);
  const Value half_low = mulacc(z, -0.5, 1.0 - half);
  const Value half_error = mulacc(0.0 - r, angle.low, half_low);
  const Sum cos = add(half, mulacc(z * z, polynomial(z, t.cos), half_error));
  const Value top = where(inverted, cos.high, sin.high),
              bottom = where(inverted, sin.high, cos.high);
  const Value top_low = where(inverted, cos.low, sin.low);
  const Value bottom_low = where(inverted, sin.low, cos.low);
  const Value ratio = top / bottom;
  const Value residue = mulacc(0.0 - ratio, bottom_low, mulacc(0.0 - ratio, bottom, top) + top_low);
  // The pole's infinity is not corrected, nor are values that are too small for a correction.
  const Value regular = less(magnitude(ratio), format_of(r).rounder()) &
                        less(std::ldexp(1.0, -format_of(r).mantissa), magnitude(ratio));
  return where(regular, ratio + residue / bottom, ratio);
}

// `function(angle)` of the reduced |x|. Infinities and NaN give NaN.
template <class Function>
Value of_angle(Value x, Function function) {
  Emitter& e = *x.emitter;
  const Value size_bits = magnitude_bits(x);
  const Value size = from_bits(size_bits);
  const uint64_t bound = Scalar::of(x.dtype(), trig_table_of(x).moderate).bits();
  const Value result = e.acc(function(reduce_moderate(size)));
  e.if_(any(less(bound, size_bits)));
  const Value invalid = less_equal(format_of(x).infinity_bits(), size_bits);
  const Value huge = where(invalid, kNan, function(reduce_huge(size)));
  e.assign(result, where(less(bound, size_bits), huge, result));
  e.end_if();
  return result;
}

// Moves bit 1 of an integer to the sign bit.
Value bit1_as_sign(Value n) {
  return n << (bits_of(n.dtype()) - 2);
}

}  // namespace

Value sin(Operands x) {
  return of_angle(x[0], [&](const Angle& angle) {
    const SinCos f = sin_cos_of_rest(angle.rest);
    const Value result = where(equal(angle.quadrant & 1, 0), f.sin, f.cos);
    return flip_sign(result, bit1_as_sign(angle.quadrant) ^ bits(x[0]));
  });
}

Value cos(Operands x) {
  return of_angle(x[0], [&](const Angle& angle) {
    const SinCos f = sin_cos_of_rest(angle.rest);
    const Value result = where(equal(angle.quadrant & 1, 0), f.cos, f.sin);
    return flip_sign(result, bit1_as_sign(angle.quadrant + 1));
  });
}

Value tan(Operands x) {
  return of_angle(x[0], [&](const Angle& angle) {
    const Value odd = angle.quadrant << (bits_of(angle.quadrant.dtype()) - 1);
    return flip_sign(tan_of_rest(angle, not_equal(odd, 0)), odd ^ bits(x[0]));
  });
}

}  // namespace rune::lower::decomposition
