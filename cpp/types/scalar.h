// One value of any dtype, with exact conversion, printing and bits.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "types/dtype.h"

namespace rune {

// A value of any dtype except complex ones. The payload of a NaN is kept only in float64.
class Scalar {
 public:
  Scalar() = default;
  // The value converted to the dtype: floats are rounded, integers wrap, bool is value != 0.
  static Scalar of(DType dtype, double value);
  static Scalar of(DType dtype, int64_t value);
  static Scalar of(DType dtype, uint64_t value);
  static Scalar of(DType dtype, int value) { return of(dtype, static_cast<int64_t>(value)); }
  static Scalar of(DType dtype, bool value) { return of(dtype, static_cast<int64_t>(value)); }
  static Scalar zero(DType dtype) { return of(dtype, int64_t{0}); }
  static Scalar one(DType dtype) { return of(dtype, int64_t{1}); }
  // The lowest and highest value; -inf and inf for floats.
  static Scalar lowest(DType dtype);
  static Scalar highest(DType dtype);
  // Read and write size_of(dtype) bytes.
  static Scalar load(DType dtype, const void* from);
  void store(void* to) const;
  // The zero-extended bits, and the value with these bits.
  uint64_t bits() const;
  static Scalar from_bits(DType dtype, uint64_t bits);
  // See types/word.h.
  uint64_t word() const { return word_; }

  DType dtype() const { return dtype_; }
  double as_double() const;  // any dtype
  int64_t as_int64() const;  // integers and bool; floats must be in range
  uint64_t as_uint64() const;
  bool as_bool() const;

  // NumPy's astype on x86. A float is truncated to int32 if `to` is int32 or narrower, otherwise to
  // int64; NaN and values that do not fit give that type's lowest value. The result wraps to the
  // width of `to`. uint64 accepts values below 2^64; larger ones give 0. Never traps. bfloat16 is
  // rounded as by ml_dtypes.
  Scalar cast(DType to) const;

  // Compares dtype and bits, so 0.0 differs from -0.0 and NaN equals NaN.
  bool operator==(const Scalar& other) const = default;

  // The text `1.5`, `-0.0`, `nan`, `inf`, `7` or `true`, which parse() reads back exactly.
  std::string text() const;
  static Scalar parse(DType dtype, text::Lexer& lexer);

 private:
  Scalar(DType dtype, uint64_t word);

  DType dtype_ = DType::Float32;
  uint64_t word_ = 0;
};

// The bytes of an array of these values.
std::vector<uint8_t> stored(std::span<const Scalar> values);

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
    if (rune::is_complex(dtype)) lexer.fail("a complex constant is a `complex` of two constants");
    lexer.expect("(");
    rune::Scalar v = rune::Scalar::parse(dtype, lexer);
    lexer.expect(")");
    return v;
  }
};
