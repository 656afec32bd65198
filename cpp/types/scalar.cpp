#include "types/scalar.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"

namespace rune {

namespace {

// Rounds a double to a binary float with `mantissa` stored bits and exponent bias `bias`, ties to
// even, in one rounding. Returns the bits without the sign.
uint16_t round_to_small_float(double magnitude, int mantissa, int bias, int max_exponent_field) {
  if (std::isnan(magnitude))
    return static_cast<uint16_t>((max_exponent_field << mantissa) | (1 << (mantissa - 1)));
  if (std::isinf(magnitude)) return static_cast<uint16_t>(max_exponent_field << mantissa);
  if (magnitude == 0) return 0;
  int exponent;
  std::frexp(magnitude, &exponent);  // magnitude = f * 2^exponent, f in [0.5, 1)
  exponent -= 1;
  const int field = exponent + bias;
  const int shift = field >= 1 ? mantissa - exponent : mantissa + bias - 1;
  const double scaled = std::ldexp(magnitude, shift);  // exact
  const double rounded = std::nearbyint(scaled);
  uint64_t value = static_cast<uint64_t>(rounded);
  if (field >= 1) value += static_cast<uint64_t>(field - 1) << mantissa;
  const uint64_t infinity = static_cast<uint64_t>(max_exponent_field) << mantissa;
  return static_cast<uint16_t>(value > infinity ? infinity : value);
}

double small_float_to_double(uint16_t bits, int mantissa, int bias, int max_exponent_field) {
  const bool negative = bits >> 15;
  const int field = (bits & 0x7fff) >> mantissa;
  const int fraction = bits & ((1 << mantissa) - 1);
  double value;
  if (field == max_exponent_field) {
    value = fraction ? std::numeric_limits<double>::quiet_NaN()
                     : std::numeric_limits<double>::infinity();
  } else if (field == 0) {
    value = std::ldexp(fraction, 1 - bias - mantissa);
  } else {
    value = std::ldexp(fraction + (1 << mantissa), field - bias - mantissa);
  }
  return negative ? -value : value;
}

// Wraps 64 bits to the width of an integer dtype.
int64_t wrap(DType dtype, int64_t value) {
  switch (dtype) {
    case DType::Int8: return static_cast<int8_t>(value);
    case DType::Int16: return static_cast<int16_t>(value);
    case DType::Int32: return static_cast<int32_t>(value);
    case DType::Uint8: return static_cast<uint8_t>(value);
    case DType::Uint16: return static_cast<uint16_t>(value);
    case DType::Uint32: return static_cast<uint32_t>(value);
    default: return value;
  }
}

// A float as an integer dtype before wrapping, by the x86 conversion that NumPy's C code compiles
// to: the signed 32-bit one for int32 and narrower types, the signed 64-bit one for the others,
// INT_MIN for NaN and values out of its range. From 2^63, uint64 converts value - 2^63 and flips
// the top bit.
int64_t truncate(DType dtype, double value) {
  constexpr double kTwo31 = 2147483648.0, kTwo63 = 9223372036854775808.0;
  if (dtype == DType::Uint64 && value >= kTwo63)
    return truncate(DType::Int64, value - kTwo63) ^ std::numeric_limits<int64_t>::min();
  if (dtype == DType::Int64 || dtype == DType::Uint64 || dtype == DType::Uint32)
    return std::fabs(value) < kTwo63 ? static_cast<int64_t>(value)
                                     : std::numeric_limits<int64_t>::min();
  return std::fabs(value) < kTwo31 ? static_cast<int64_t>(value)
                                   : std::numeric_limits<int32_t>::min();
}

}  // namespace

uint16_t half_from_float(double value) {
  return static_cast<uint16_t>((std::signbit(value) ? 0x8000 : 0) |
                               round_to_small_float(std::fabs(value), 10, 15, 31));
}
double half_to_float(uint16_t bits) {
  return small_float_to_double(bits, 10, 15, 31);
}
uint16_t bfloat16_from_float(double value) {
  return static_cast<uint16_t>((std::signbit(value) ? 0x8000 : 0) |
                               round_to_small_float(std::fabs(value), 7, 127, 255));
}
double bfloat16_to_float(uint16_t bits) {
  return small_float_to_double(bits, 7, 127, 255);
}

Scalar Scalar::of(DType dtype, double value) {
  Scalar s;
  s.dtype_ = dtype;
  switch (dtype) {
    case DType::Float64: s.f_ = value; break;
    case DType::Float32: s.f_ = static_cast<float>(value); break;
    case DType::Float16: s.f_ = half_to_float(half_from_float(value)); break;
    // By way of float32, as ml_dtypes rounds.
    case DType::Bfloat16:
      s.f_ = bfloat16_to_float(bfloat16_from_float(static_cast<float>(value)));
      break;
    case DType::Bool: s.i_ = value != 0; break;
    default: s.i_ = wrap(dtype, truncate(dtype, value));
  }
  return s;
}

Scalar Scalar::of(DType dtype, int64_t value) {
  Scalar s;
  s.dtype_ = dtype;
  if (dtype == DType::Float32) {
    s.f_ = static_cast<float>(value);  // one rounding, not two
  } else if (dtype == DType::Bfloat16) {
    return of(dtype, static_cast<double>(static_cast<float>(value)));
  } else if (is_float(dtype)) {
    return of(dtype, static_cast<double>(value));
  } else {
    s.i_ = is_bool(dtype) ? value != 0 : wrap(dtype, value);
  }
  return s;
}

Scalar Scalar::of(DType dtype, uint64_t value) {
  if (dtype == DType::Float32 || dtype == DType::Bfloat16)
    return of(dtype, static_cast<double>(static_cast<float>(value)));
  if (is_float(dtype)) return of(dtype, static_cast<double>(value));
  return of(dtype, static_cast<int64_t>(value));
}

Scalar Scalar::lowest(DType dtype) {
  switch (kind(dtype)) {
    case Kind::Float: return of(dtype, -std::numeric_limits<double>::infinity());
    case Kind::Int:
      return of(dtype, static_cast<int64_t>(uint64_t{1} << (bits_of(dtype) - 1)) *
                           (bits_of(dtype) == 64 ? 1 : -1));
    case Kind::Uint:
    case Kind::Bool: return zero(dtype);
  }
  RUNE_UNREACHABLE();
}

Scalar Scalar::highest(DType dtype) {
  switch (kind(dtype)) {
    case Kind::Float: return of(dtype, std::numeric_limits<double>::infinity());
    case Kind::Int:
      return of(dtype, static_cast<int64_t>((uint64_t{1} << (bits_of(dtype) - 1)) - 1));
    case Kind::Uint: return of(dtype, int64_t{-1});
    case Kind::Bool: return one(dtype);
  }
  RUNE_UNREACHABLE();
}

uint64_t Scalar::bits() const {
  switch (dtype_) {
    case DType::Float64: return std::bit_cast<uint64_t>(f_);
    case DType::Float32:
      if (std::isnan(f_)) return std::signbit(f_) ? 0xffc00000u : 0x7fc00000u;
      return std::bit_cast<uint32_t>(static_cast<float>(f_));
    case DType::Float16: return half_from_float(f_);
    case DType::Bfloat16: return bfloat16_from_float(f_);
    default: break;
  }
  const int width = bits_of(dtype_);
  const uint64_t mask = width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
  return static_cast<uint64_t>(i_) & mask;
}

Scalar Scalar::from_bits(DType dtype, uint64_t bits) {
  Scalar s;
  s.dtype_ = dtype;
  switch (dtype) {
    case DType::Float64: s.f_ = std::bit_cast<double>(bits); break;
    case DType::Float32: s.f_ = std::bit_cast<float>(static_cast<uint32_t>(bits)); break;
    case DType::Float16: s.f_ = half_to_float(static_cast<uint16_t>(bits)); break;
    case DType::Bfloat16: s.f_ = bfloat16_to_float(static_cast<uint16_t>(bits)); break;
    case DType::Bool: s.i_ = bits != 0; break;
    default: s.i_ = wrap(dtype, static_cast<int64_t>(bits));
  }
  return s;
}

Scalar Scalar::load(DType dtype, const void* from) {
  uint64_t bits = 0;
  std::memcpy(&bits, from, size_of(dtype));  // little-endian hosts only, as are all targets
  return from_bits(dtype, bits);
}

void Scalar::store(void* to) const {
  const uint64_t raw = bits();
  std::memcpy(to, &raw, size_of(dtype_));
}

double Scalar::as_double() const {
  if (is_float(dtype_)) return f_;
  return dtype_ == DType::Uint64 ? static_cast<double>(static_cast<uint64_t>(i_))
                                 : static_cast<double>(i_);
}

int64_t Scalar::as_int64() const {
  return is_float(dtype_) ? of(DType::Int64, f_).i_ : i_;
}
uint64_t Scalar::as_uint64() const {
  return static_cast<uint64_t>(is_float(dtype_) ? of(DType::Uint64, f_).i_ : i_);
}
bool Scalar::as_bool() const {
  return is_float(dtype_) ? f_ != 0 : i_ != 0;
}

Scalar Scalar::cast(DType to) const {
  if (to == dtype_) return *this;
  if (is_float(dtype_)) return of(to, f_);
  return dtype_ == DType::Uint64 ? of(to, static_cast<uint64_t>(i_)) : of(to, i_);
}

std::string Scalar::text() const {
  if (is_bool(dtype_)) return i_ ? "true" : "false";
  if (dtype_ == DType::Uint64) return std::to_string(static_cast<uint64_t>(i_));
  if (!is_float(dtype_)) return std::to_string(i_);
  if (dtype_ == DType::Float32 && std::isfinite(f_)) {
    char buffer[40];
    const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, static_cast<float>(f_));
    RUNE_CHECK(error == std::errc());
    std::string out(buffer, end);
    if (out.find_first_of(".e") == std::string::npos) out += ".0";
    return out;
  }
  return text::print_double(f_);
}

Scalar Scalar::parse(DType dtype, text::Lexer& lexer) {
  if (is_bool(dtype)) return of(dtype, text::Codec<bool>::parse(lexer));
  const std::string token = lexer.number();
  if (is_float(dtype)) return of(dtype, text::parse_double(token, lexer));
  uint64_t magnitude = 0;
  const bool negative = token[0] == '-';
  const char* begin = token.data() + (negative || token[0] == '+' ? 1 : 0);
  const auto [end, error] = std::from_chars(begin, token.data() + token.size(), magnitude);
  if (error != std::errc() || end != token.data() + token.size())
    lexer.fail("expected an integer, found " + token);
  return of(dtype, negative ? static_cast<int64_t>(-magnitude) : static_cast<int64_t>(magnitude));
}

}  // namespace rune
