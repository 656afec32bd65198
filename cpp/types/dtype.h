// Element types and NumPy 2's promotion rules (NEP 50).
#pragma once

#include <cstdint>
#include <string_view>

#include "base/text.h"

namespace rune {

enum class DType : uint8_t {
#define RUNE_DTYPE(Name, ...) Name,
#define RUNE_COMPLEX_DTYPE(Name, ...) Name,
#include "types/dtypes.def"
#undef RUNE_DTYPE
};

// The dtypes that kernels compute with. Complex ones come after them.
inline constexpr int kNumDTypes = 0
#define RUNE_DTYPE(...) +1
#include "types/dtypes.def"
#undef RUNE_DTYPE
    ;
// The dtypes of a graph: those of kernels and the complex ones.
inline constexpr int kNumGraphDTypes = kNumDTypes
#define RUNE_DTYPE(...)
#define RUNE_COMPLEX_DTYPE(...) +1
#include "types/dtypes.def"
#undef RUNE_DTYPE
    ;

enum class Kind : uint8_t { Bool, Int, Uint, Float, Complex };

Kind kind(DType dtype);
// Bytes of one element.
int size_of(DType dtype);
inline int bits_of(DType dtype) {
  return 8 * size_of(dtype);
}
// The short name used in IR text: f32, i64, bool.
const char* name_of(DType dtype);
// NumPy's name: float32, int64, bool.
const char* numpy_name(DType dtype);

inline bool is_float(DType d) {
  return kind(d) == Kind::Float;
}
// Signed or unsigned, bool not included.
inline bool is_integer(DType d) {
  return kind(d) == Kind::Int || kind(d) == Kind::Uint;
}
inline bool is_signed(DType d) {
  return kind(d) == Kind::Int || kind(d) == Kind::Float;
}
inline bool is_bool(DType d) {
  return d == DType::Bool;
}
inline bool is_complex(DType d) {
  return kind(d) == Kind::Complex;
}
// A float or complex.
inline bool is_inexact(DType d) {
  return is_float(d) || is_complex(d);
}
// The dtype of a complex dtype's real and imaginary part. Any other dtype gives itself.
DType real_of(DType dtype);
// The complex dtype that holds numbers of a float dtype: complex64 for floats of 16 and 32 bits,
// else complex128.
DType complex_of(DType dtype);
// Whether a letter of `letters` stands for the dtype's kind: b for bool, s for signed integers, u
// for unsigned ones, i for both, f for floats, c for complex numbers.
bool is_of_kinds(DType dtype, std::string_view letters);

// numpy.result_type(a, b) for strong dtypes. bfloat16 is promoted as in NumPy's ufuncs with
// ml_dtypes: with bool or 8-bit integers to bfloat16, with 16-bit integers or float16 to float32,
// with wider integers to float64.
DType promote(DType a, DType b);

// numpy.result_type(a, <Python scalar of this kind>): Python scalars are weak. `weak` is Bool, Int,
// Float or Complex. Int with bool gives int64. Float with bool or integers gives float64. Complex
// gives the complex dtype of Float's result.
DType promote_weak(DType a, Kind weak);

// The dtype in which NumPy's float-only ufuncs (exp, sqrt ...) compute: float16 for bool, int8 and
// uint8, float32 for 16-bit integers, float64 for wider ones. Floats and complex dtypes give
// themselves.
DType float_of(DType dtype);

// The dtype in which numpy.sum and numpy.prod accumulate: bool and narrow integers widen to 64
// bits.
DType sum_of(DType dtype);

}  // namespace rune

RUNE_ENUM_CODEC(rune::DType, rune::kNumGraphDTypes, rune::name_of);
