// One value of any dtype, with exact conversion, printing and bits.
#pragma once

#include <cstdint>
#include <string>

#include "types/dtype.h"

namespace rune {

// IEEE conversions, round to nearest even.
uint16_t half_from_float(double value);
double half_to_float(uint16_t bits);
uint16_t bfloat16_from_float(double value);
double bfloat16_to_float(uint16_t bits);

// A value of a dtype. Integers and bool are held as 64 bits (sign- or zero-extended), floats as the
// double that equals them, so float32 arithmetic must round after each operation (`Scalar::of`
// does). NaN payloads are not kept.
class Scalar {
 public:
  Scalar() = default;
  // The value converted to the dtype: floats rounded, integers wrapped, bool is value != 0.
  static Scalar of(DType dtype, double value);
  static Scalar of(DType dtype, int64_t value);
  static Scalar of(DType dtype, uint64_t value);
  static Scalar of(DType dtype, int value) { return of(dtype, static_cast<int64_t>(value)); }
  static Scalar of(DType dtype, bool value) { return of(dtype, static_cast<int64_t>(value)); }
  static Scalar zero(DType dtype) { return of(dtype, int64_t{0}); }
  static Scalar one(DType dtype) { return of(dtype, int64_t{1}); }
  // Smallest and largest: -inf and inf for floats.
  static Scalar lowest(DType dtype);
  static Scalar highest(DType dtype);
  // Reads size_of(dtype) bytes; writes them.
  static Scalar load(DType dtype, const void* from);
  void store(void* to) const;
  // The bits, zero-extended, and back.
  uint64_t bits() const;
  static Scalar from_bits(DType dtype, uint64_t bits);

  DType dtype() const { return dtype_; }
  double as_double() const;  // any dtype
  int64_t as_int64() const;  // integers and bool; floats must be in range
  uint64_t as_uint64() const;
  bool as_bool() const;

  // NumPy's astype on x86: float to integer truncates, by way of int32 for int32 and narrower
  // types, of int64 for the others; NaN and what does not fit gives INT_MIN of that type; the
  // result wraps to the width. uint64 takes values up to 2^64, and 0 from there. Never traps. To
  // bfloat16: as ml_dtypes.
  Scalar cast(DType to) const;

  // Same dtype and same bits, so that 0.0 differs from -0.0 and NaN equals NaN.
  bool operator==(const Scalar& other) const {
    return dtype_ == other.dtype_ && bits() == other.bits();
  }

  // `1.5`, `-0.0`, `nan`, `inf`, `7`, `true`; reads back exactly.
  std::string text() const;
  static Scalar parse(DType dtype, text::Lexer& lexer);

 private:
  DType dtype_ = DType::Float32;
  union {
    int64_t i_ = 0;
    double f_;
  };
};

}  // namespace rune

// Scalars in IR text carry their dtype: `f32(1.5)`.
template <>
struct rune::text::Codec<rune::Scalar> {
  static void print(std::string& out, const rune::Scalar& v) {
    out += rune::name_of(v.dtype());
    out += '(' + v.text() + ')';
  }
  static rune::Scalar parse(Lexer& lexer) {
    const rune::DType dtype = Codec<rune::DType>::parse(lexer);
    lexer.expect("(");
    rune::Scalar v = rune::Scalar::parse(dtype, lexer);
    lexer.expect(")");
    return v;
  }
};
