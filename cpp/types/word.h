// Words: values of any dtype in 64 bits. A word holds an integer extended by its dtype's
// signedness, a bool as 0 or 1, or a float's bits, zero-extended.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "base/error.h"
#include "types/dtype.h"

namespace rune {

// IEEE conversions, round to nearest even.
uint16_t half_from_float(double value);
double half_to_float(uint16_t bits);
uint16_t bfloat16_from_float(double value);
double bfloat16_to_float(uint16_t bits);

// Converts a float to an integer dtype as the x86 instructions do that NumPy's C code compiles to,
// without wrapping the result. The conversion is the signed 32-bit one for int32 and narrower
// types, and the signed 64-bit one for the others. NaN and values out of range give its lowest
// value. For uint64, values from 2^63 are converted as value - 2^63 with the top bit flipped.
int64_t truncate(DType dtype, double value);

// The C++ type of a dtype's values, and the C++ type in which operations on them are computed.
template <DType kDType>
struct Represented;
#define RUNE_DTYPE(Name, text, numpy, bytes, kind, Type, WideType) \
  template <>                                                      \
  struct Represented<DType::Name> {                                \
    using T = Type;                                                \
    using Wide = WideType;                                         \
  };
#include "types/dtypes.def"
#undef RUNE_DTYPE
template <DType kDType>
using Wide = typename Represented<kDType>::Wide;

template <DType kDType>
Wide<kDType> read(uint64_t word) {
  if constexpr (kDType == DType::Float64) return std::bit_cast<double>(word);
  if constexpr (kDType == DType::Float32) return std::bit_cast<float>(static_cast<uint32_t>(word));
  if constexpr (kDType == DType::Float16) return half_to_float(static_cast<uint16_t>(word));
  if constexpr (kDType == DType::Bfloat16) return bfloat16_to_float(static_cast<uint16_t>(word));
  return static_cast<Wide<kDType>>(word);
}

// Converts a number to the dtype and returns its word. Floats are rounded once. Integers wrap. An
// integer becomes a bfloat16 by way of float32, as in ml_dtypes.
template <DType kDType, class V>
uint64_t word_of(V value) {
  using T = typename Represented<kDType>::T;
  if constexpr (kDType == DType::Float64)
    return std::bit_cast<uint64_t>(static_cast<double>(value));
  else if constexpr (kDType == DType::Float32)
    return std::bit_cast<uint32_t>(static_cast<float>(value));
  else if constexpr (kDType == DType::Float16)
    return half_from_float(static_cast<double>(value));
  else if constexpr (kDType == DType::Bfloat16)
    return bfloat16_from_float(std::is_floating_point_v<V> ? value : static_cast<float>(value));
  else if constexpr (kDType == DType::Bool)
    return value != 0;
  else if constexpr (std::is_floating_point_v<V>)
    return word_of<kDType>(truncate(kDType, value));
  else
    return static_cast<uint64_t>(static_cast<Wide<kDType>>(static_cast<T>(value)));
}

// The word of the value with these bits; bits beyond the dtype's width are ignored.
template <DType kDType>
uint64_t word_from_bits(uint64_t bits) {
  if constexpr (kDType == DType::Float16 || kDType == DType::Bfloat16)
    return static_cast<uint16_t>(bits);
  else if constexpr (kDType == DType::Float32)
    return static_cast<uint32_t>(bits);
  else if constexpr (kDType == DType::Float64)
    return bits;
  else if constexpr (kDType == DType::Bool)
    return static_cast<uint8_t>(bits) != 0;
  else
    return word_of<kDType>(bits);
}

// Calls f with the dtype as a compile-time constant. The dtype is not complex.
template <class F>
auto with_dtype(DType dtype, F f) {
  switch (dtype) {
#define RUNE_DTYPE(Name, ...) \
  case DType::Name: return f(std::integral_constant<DType, DType::Name>());
#define RUNE_COMPLEX_DTYPE(Name, ...) case DType::Name:
#include "types/dtypes.def"
#undef RUNE_DTYPE
    break;
  }
  RUNE_UNREACHABLE(numpy_name(dtype), " is no dtype of words");
}

}  // namespace rune
