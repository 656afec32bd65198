#include "types/dtype.h"

#include "base/error.h"

namespace rune {

namespace {

struct Row {
  const char* text;
  const char* numpy;
  int bytes;
  Kind kind;
  DType real;
};

constexpr Row kRows[] = {
#define RUNE_DTYPE(Name, text, numpy, bytes, kind, ...) \
  {text, numpy, bytes, Kind::kind, DType::Name},
#define RUNE_COMPLEX_DTYPE(Name, text, numpy, bytes, real) \
  {text, numpy, bytes, Kind::Complex, DType::real},
#include "types/dtypes.def"
#undef RUNE_DTYPE
};

const Row& row(DType dtype) {
  return kRows[static_cast<int>(dtype)];
}

DType signed_of_bytes(int bytes) {
  switch (bytes) {
    case 1: return DType::Int8;
    case 2: return DType::Int16;
    case 4: return DType::Int32;
    default: return DType::Int64;
  }
}

// The float dtype with which NumPy promotes integers of this width: float16 for 8 bits, float32 for
// 16 bits, float64 for more.
DType float_for_integer(int bytes) {
  return bytes == 1 ? DType::Float16 : bytes == 2 ? DType::Float32 : DType::Float64;
}

DType promote_int_float(DType integer, DType floating) {
  if (floating == DType::Bfloat16 && size_of(integer) == 1) return floating;
  const DType least = is_bool(integer) ? floating : float_for_integer(size_of(integer));
  return size_of(least) > size_of(floating) ? least : floating;
}

}  // namespace

Kind kind(DType dtype) {
  return row(dtype).kind;
}
bool is_of_kinds(DType dtype, std::string_view letters) {
  static constexpr std::string_view kLetters[] = {"b", "si", "ui", "f", "c"};  // by Kind
  return letters.find_first_of(kLetters[static_cast<int>(kind(dtype))]) != std::string_view::npos;
}
DType real_of(DType dtype) {
  return row(dtype).real;
}
DType complex_of(DType dtype) {
  return size_of(real_of(dtype)) > 4 ? DType::Complex128 : DType::Complex64;
}
int size_of(DType dtype) {
  return row(dtype).bytes;
}
const char* name_of(DType dtype) {
  return row(dtype).text;
}
const char* numpy_name(DType dtype) {
  return row(dtype).numpy;
}

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (is_bool(a)) return b;
  if (is_bool(b)) return a;
  if (is_complex(a) || is_complex(b)) return complex_of(promote(real_of(a), real_of(b)));
  if (is_float(a) && is_float(b)) {
    if (size_of(a) == 2 && size_of(b) == 2) return DType::Float32;  // float16 with bfloat16
    return size_of(a) > size_of(b) ? a : b;
  }
  if (is_float(a)) return promote_int_float(b, a);
  if (is_float(b)) return promote_int_float(a, b);
  if (kind(a) == kind(b)) return size_of(a) > size_of(b) ? a : b;
  const DType s = kind(a) == Kind::Int ? a : b;
  const DType u = kind(a) == Kind::Int ? b : a;
  if (size_of(s) > size_of(u)) return s;
  if (size_of(u) == 8) return DType::Float64;
  return signed_of_bytes(2 * size_of(u));
}

DType promote_weak(DType a, Kind weak) {
  switch (weak) {
    case Kind::Bool: return a;
    case Kind::Int:
    case Kind::Uint: return is_bool(a) ? DType::Int64 : a;
    case Kind::Float: return is_inexact(a) ? a : DType::Float64;
    case Kind::Complex: return complex_of(promote_weak(real_of(a), Kind::Float));
  }
  RUNE_UNREACHABLE();
}

DType float_of(DType dtype) {
  if (is_inexact(dtype)) return dtype;
  return is_bool(dtype) ? DType::Float16 : float_for_integer(size_of(dtype));
}

DType sum_of(DType dtype) {
  switch (kind(dtype)) {
    case Kind::Bool:
    case Kind::Int: return DType::Int64;
    case Kind::Uint: return DType::Uint64;
    case Kind::Float:
    case Kind::Complex: return dtype;
  }
  RUNE_UNREACHABLE();
}

}  // namespace rune
