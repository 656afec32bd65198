#include "types/scalar.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "types/word.h"

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

namespace {

template <class V>
uint64_t converted(DType dtype, V value) {
  return with_dtype(dtype, [&](auto d) { return word_of<d()>(value); });
}

}  // namespace

Scalar::Scalar(DType dtype, uint64_t word) : dtype_(dtype), word_(word) {
  constexpr uint64_t kSign = 0x80000000, kInfinity = 0x7f800000, kQuietNan = 0x7fc00000;
  if (dtype == DType::Float32 && (word & ~kSign) > kInfinity) word_ = (word & kSign) | kQuietNan;
}

Scalar Scalar::of(DType dtype, double value) {
  return {dtype, converted(dtype, value)};
}
Scalar Scalar::of(DType dtype, int64_t value) {
  return {dtype, converted(dtype, value)};
}
Scalar Scalar::of(DType dtype, uint64_t value) {
  return {dtype, converted(dtype, value)};
}

Scalar Scalar::lowest(DType dtype) {
  if (is_float(dtype)) return of(dtype, -std::numeric_limits<double>::infinity());
  if (!is_signed(dtype)) return zero(dtype);
  return of(dtype, std::numeric_limits<int64_t>::min() >> (64 - bits_of(dtype)));
}

Scalar Scalar::highest(DType dtype) {
  if (is_float(dtype)) return of(dtype, std::numeric_limits<double>::infinity());
  if (!is_signed(dtype)) return of(dtype, int64_t{-1});
  return of(dtype, std::numeric_limits<int64_t>::max() >> (64 - bits_of(dtype)));
}

uint64_t Scalar::bits() const {
  return word_ & ~uint64_t{0} >> (64 - bits_of(dtype_));
}

Scalar Scalar::from_bits(DType dtype, uint64_t bits) {
  const Scalar raw{dtype, with_dtype(dtype, [&](auto d) { return word_from_bits<d()>(bits); })};
  // Reading quiets a narrow NaN.
  return size_of(dtype) == 2 && is_float(dtype) ? raw.cast(dtype) : raw;
}

Scalar Scalar::load(DType dtype, const void* from) {
  uint64_t bits = 0;
  std::memcpy(&bits, from, size_of(dtype));  // little-endian hosts only, as are all targets
  return from_bits(dtype, bits);
}

void Scalar::store(void* to) const {
  std::memcpy(to, &word_, size_of(dtype_));
}

double Scalar::as_double() const {
  return with_dtype(dtype_, [&](auto d) { return static_cast<double>(read<d()>(word_)); });
}
int64_t Scalar::as_int64() const {
  return static_cast<int64_t>(cast(DType::Int64).word_);
}
uint64_t Scalar::as_uint64() const {
  return cast(DType::Uint64).word_;
}
bool Scalar::as_bool() const {
  return cast(DType::Bool).word_;
}

Scalar Scalar::cast(DType to) const {
  return with_dtype(dtype_, [&](auto d) { return of(to, read<d()>(word_)); });
}

std::string Scalar::text() const {
  if (is_bool(dtype_)) return word_ ? "true" : "false";
  if (dtype_ == DType::Uint64) return std::to_string(word_);
  if (!is_float(dtype_)) return std::to_string(static_cast<int64_t>(word_));
  const double value = as_double();
  if (dtype_ != DType::Float32 || !std::isfinite(value)) return text::print_double(value);
  char buffer[40];
  const auto [end, error] =
      std::to_chars(buffer, buffer + sizeof buffer, static_cast<float>(value));
  RUNE_CHECK(error == std::errc());
  std::string out(buffer, end);
  if (out.find_first_of(".e") == std::string::npos) out += ".0";
  return out;
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

std::vector<uint8_t> stored(std::span<const Scalar> values) {
  std::vector<uint8_t> bytes;
  for (const Scalar& value : values) {
    const size_t size = size_of(value.dtype());
    bytes.resize(bytes.size() + size);
    value.store(bytes.data() + bytes.size() - size);
  }
  return bytes;
}

}  // namespace rune
