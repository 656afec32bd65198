// Values at which operations are likely to go wrong.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "types/scalar.h"

namespace rune {

struct FloatFormat {
  int digits;  // stored bits of the mantissa
  int lowest;  // exponent of the smallest normal number
  int highest;
};

inline FloatFormat format_of(DType dtype) {
  switch (dtype) {
    case DType::Float16: return {10, -14, 15};
    case DType::Bfloat16: return {7, -126, 127};
    case DType::Float32: return {23, -126, 127};
    default: return {52, -1022, 1023};
  }
}

// Zeros, subnormal numbers (among them powers of two), the ends of the normal ones, powers of two,
// numbers that round, integers, in both signs; infinities and NaN. Integers: the extremes, 2^k and
// its neighbours. Each once.
inline std::vector<Scalar> special_values(DType dtype) {
  std::vector<Scalar> values;
  const auto add = [&](const Scalar& value) {
    for (const Scalar& known : values)
      if (known == value) return;
    values.push_back(value);
  };
  if (is_float(dtype)) {
    const auto [digits, lowest, highest] = format_of(dtype);
    const double least = std::ldexp(1, lowest - digits), normal = std::ldexp(1, lowest);
    const double largest = std::ldexp(2 - std::ldexp(1, -digits), highest);
    for (const double v : {0.0,
                           least,
                           2 * least,
                           3 * least,
                           std::ldexp(1, lowest - 2),
                           normal / 2,
                           normal - least,
                           normal,
                           std::ldexp(1, -digits),
                           0.5,
                           1.0,
                           1 + std::ldexp(1, -digits),
                           1.5,
                           2.0,
                           2.5,
                           3.0,
                           10.0,
                           std::ldexp(1, digits),
                           std::ldexp(1, highest - 1),
                           std::ldexp(1, highest),
                           largest,
                           std::numeric_limits<double>::infinity()}) {
      add(Scalar::of(dtype, v));
      add(Scalar::of(dtype, -v));
    }
    add(Scalar::of(dtype, std::numeric_limits<double>::quiet_NaN()));
    return values;
  }
  if (is_bool(dtype)) return {Scalar::of(dtype, false), Scalar::of(dtype, true)};
  const int bits = bits_of(dtype);
  for (const int shift : {0, 1, 3, bits / 2, bits - 2, bits - 1})
    for (const int64_t delta : {-1, 0, 1}) {
      const uint64_t value = (uint64_t{1} << shift) + static_cast<uint64_t>(delta);
      add(Scalar::of(dtype, value));
      add(Scalar::of(dtype, uint64_t{0} - value));
    }
  return values;
}

}  // namespace rune
