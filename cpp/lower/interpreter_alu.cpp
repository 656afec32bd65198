// Scalar operations on the interpreter's words. What is frequent has a function of its own per
// dtype, with the arithmetic of alu/eval.cpp (whose float32 results, computed in double and
// rounded, equal those of float32 arithmetic for + - * / sqrt); everything else goes through
// evaluate().
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "alu/eval.h"
#include "base/error.h"
#include "lower/interpreter_program.h"

namespace rune::lower::interpreter {

namespace {

template <class T>
T get(uint64_t word) {
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<float>(static_cast<uint32_t>(word));
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<double>(word);
  } else {
    return static_cast<T>(word);
  }
}

template <class T>
uint64_t put(T value) {
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<uint32_t>(value);
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<uint64_t>(value);
  } else {
    return static_cast<uint64_t>(static_cast<int64_t>(value));
  }
}

template <class T>
using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;

template <AluOp kOp, class T>
T divide(T narrow_a, T narrow_b) {
  const Wide<T> a = narrow_a, b = narrow_b;
  constexpr bool kQuotient = kOp == AluOp::Div || kOp == AluOp::Idiv;
  if (b == 0) return 0;
  if (std::is_signed_v<T> && b == static_cast<Wide<T>>(-1))
    return kQuotient ? static_cast<T>(-static_cast<uint64_t>(a)) : T{0};
  const Wide<T> quotient = a / b, remainder = a % b;
  const bool adjust = remainder != 0 && ((remainder < 0) != (b < 0));
  if constexpr (kOp == AluOp::Div) return static_cast<T>(quotient);
  if constexpr (kOp == AluOp::Fmod) return static_cast<T>(remainder);
  if constexpr (kOp == AluOp::Idiv) return static_cast<T>(adjust ? quotient - 1 : quotient);
  return static_cast<T>(adjust ? remainder + b : remainder);
}

template <AluOp kOp, class T>
T shift(T a, T b) {
  if (b < 0 || static_cast<uint64_t>(b) >= 8 * sizeof(T)) {
    return kOp == AluOp::Shr && a < 0 ? static_cast<T>(-1) : T{0};
  }
  return kOp == AluOp::Shl ? static_cast<T>(static_cast<uint64_t>(a) << b) : static_cast<T>(a >> b);
}

template <class T>
T larger(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::isnan(a) ? a : std::isnan(b) ? b : a > b ? a : b > a ? b : std::signbit(a) ? b : a;
  } else {
    return a > b ? a : b;
  }
}

template <class T>
T smaller(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::isnan(a) ? a : std::isnan(b) ? b : a < b ? a : b < a ? b : std::signbit(a) ? a : b;
  } else {
    return a < b ? a : b;
  }
}

template <AluOp kOp, class T>
auto binary(T a, T b) {
  using U = uint64_t;
  constexpr bool kFloat = std::is_floating_point_v<T>;
  if constexpr (kOp == AluOp::Cmplt)
    return a < b;
  else if constexpr (kOp == AluOp::Cmple)
    return a <= b;
  else if constexpr (kOp == AluOp::Cmpeq)
    return a == b;
  else if constexpr (kOp == AluOp::Cmpne)
    return a != b;
  else if constexpr (kOp == AluOp::Max)
    return larger(a, b);
  else if constexpr (kOp == AluOp::Min)
    return smaller(a, b);
  else if constexpr (kFloat && kOp == AluOp::Add)
    return a + b;
  else if constexpr (kFloat && kOp == AluOp::Sub)
    return a - b;
  else if constexpr (kFloat && kOp == AluOp::Mul)
    return a * b;
  else if constexpr (kFloat && kOp == AluOp::Fdiv)
    return a / b;
  else if constexpr (kOp == AluOp::Add)
    return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
  else if constexpr (kOp == AluOp::Sub)
    return static_cast<T>(static_cast<U>(a) - static_cast<U>(b));
  else if constexpr (kOp == AluOp::Mul)
    return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
  else if constexpr (kOp == AluOp::Xor)
    return static_cast<T>(a ^ b);
  else if constexpr (kOp == AluOp::Or)
    return static_cast<T>(a | b);
  else if constexpr (kOp == AluOp::And)
    return static_cast<T>(a & b);
  else if constexpr (kOp == AluOp::Shl || kOp == AluOp::Shr)
    return shift<kOp>(a, b);
  else
    return divide<kOp>(a, b);
}

template <AluOp kOp, class T>
void binary_lanes(uint64_t* dst, const uint64_t* a, const uint64_t* b, const uint64_t*,
                  const Op& op) {
  for (uint32_t i = 0; i < op.lanes; ++i) dst[i] = put(binary<kOp>(get<T>(a[i]), get<T>(b[i])));
}

template <AluOp kOp, class T>
T unary(T a) {
  if constexpr (kOp == AluOp::Sqrt)
    return std::sqrt(a);
  else if constexpr (kOp == AluOp::Recip)
    return 1 / a;
  else if constexpr (kOp == AluOp::Floor)
    return std::floor(a);
  else if constexpr (kOp == AluOp::Trunc)
    return std::trunc(a);
  else if constexpr (kOp == AluOp::Rint)
    return std::nearbyint(a);
  else if constexpr (kOp == AluOp::Not)
    return std::is_same_v<T, bool> ? !a : static_cast<T>(~static_cast<uint64_t>(a));
  else if constexpr (std::is_floating_point_v<T>)
    return kOp == AluOp::Neg ? -a : std::fabs(a);
  else
    return kOp == AluOp::Neg || a < 0 ? static_cast<T>(-static_cast<uint64_t>(a)) : a;
}

template <AluOp kOp, class T>
void unary_lanes(uint64_t* dst, const uint64_t* a, const uint64_t*, const uint64_t*, const Op& op) {
  for (uint32_t i = 0; i < op.lanes; ++i) dst[i] = put(unary<kOp>(get<T>(a[i])));
}

template <class T>
void mulacc_lanes(uint64_t* dst, const uint64_t* a, const uint64_t* b, const uint64_t* c,
                  const Op& op) {
  for (uint32_t i = 0; i < op.lanes; ++i) {
    const T x = get<T>(a[i]), y = get<T>(b[i]), z = get<T>(c[i]);
    if constexpr (std::is_floating_point_v<T>) {
      dst[i] = put(std::fma(x, y, z));
    } else {
      dst[i] = put(binary<AluOp::Add>(binary<AluOp::Mul>(x, y), z));
    }
  }
}

void where_lanes(uint64_t* dst, const uint64_t* a, const uint64_t* b, const uint64_t* c,
                 const Op& op) {
  for (uint32_t i = 0; i < op.lanes; ++i) dst[i] = a[i] ? b[i] : c[i];
}

void evaluate_lanes(uint64_t* dst, const uint64_t* a, const uint64_t* b, const uint64_t* c,
                    const Op& op) {
  const uint64_t* const words[3] = {a, b, c};
  const size_t arity = static_cast<size_t>(info(op.alu).arity);
  Scalar operands[3];
  for (uint32_t i = 0; i < op.lanes; ++i) {
    for (size_t j = 0; j < arity; ++j) operands[j] = Scalar::from_bits(op.from, words[j][i]);
    dst[i] = to_word(evaluate(op.alu, std::span<const Scalar>(operands, arity)));
  }
}

// nullptr: no fast function.
template <class T>
LaneFn compare_function(AluOp op) {
  switch (op) {
    case AluOp::Cmplt: return binary_lanes<AluOp::Cmplt, T>;
    case AluOp::Cmple: return binary_lanes<AluOp::Cmple, T>;
    case AluOp::Cmpeq: return binary_lanes<AluOp::Cmpeq, T>;
    case AluOp::Cmpne: return binary_lanes<AluOp::Cmpne, T>;
    case AluOp::Max: return binary_lanes<AluOp::Max, T>;
    case AluOp::Min: return binary_lanes<AluOp::Min, T>;
    default: return nullptr;
  }
}

template <class T>
LaneFn bit_function(AluOp op) {
  switch (op) {
    case AluOp::Xor: return binary_lanes<AluOp::Xor, T>;
    case AluOp::Or: return binary_lanes<AluOp::Or, T>;
    case AluOp::And: return binary_lanes<AluOp::And, T>;
    case AluOp::Not: return unary_lanes<AluOp::Not, T>;
    default: return compare_function<T>(op);
  }
}

template <class T>
LaneFn integer_function(AluOp op) {
  switch (op) {
    case AluOp::Add: return binary_lanes<AluOp::Add, T>;
    case AluOp::Sub: return binary_lanes<AluOp::Sub, T>;
    case AluOp::Mul: return binary_lanes<AluOp::Mul, T>;
    case AluOp::Div: return binary_lanes<AluOp::Div, T>;
    case AluOp::Idiv: return binary_lanes<AluOp::Idiv, T>;
    case AluOp::Mod: return binary_lanes<AluOp::Mod, T>;
    case AluOp::Fmod: return binary_lanes<AluOp::Fmod, T>;
    case AluOp::Shl: return binary_lanes<AluOp::Shl, T>;
    case AluOp::Shr: return binary_lanes<AluOp::Shr, T>;
    case AluOp::Neg: return unary_lanes<AluOp::Neg, T>;
    case AluOp::Abs: return unary_lanes<AluOp::Abs, T>;
    case AluOp::Mulacc: return mulacc_lanes<T>;
    default: return bit_function<T>(op);
  }
}

template <class T>
LaneFn float_function(AluOp op) {
  switch (op) {
    case AluOp::Add: return binary_lanes<AluOp::Add, T>;
    case AluOp::Sub: return binary_lanes<AluOp::Sub, T>;
    case AluOp::Mul: return binary_lanes<AluOp::Mul, T>;
    case AluOp::Fdiv: return binary_lanes<AluOp::Fdiv, T>;
    case AluOp::Neg: return unary_lanes<AluOp::Neg, T>;
    case AluOp::Abs: return unary_lanes<AluOp::Abs, T>;
    case AluOp::Sqrt: return unary_lanes<AluOp::Sqrt, T>;
    case AluOp::Recip: return unary_lanes<AluOp::Recip, T>;
    case AluOp::Floor: return unary_lanes<AluOp::Floor, T>;
    case AluOp::Trunc: return unary_lanes<AluOp::Trunc, T>;
    case AluOp::Rint: return unary_lanes<AluOp::Rint, T>;
    case AluOp::Mulacc: return mulacc_lanes<T>;
    default: return compare_function<T>(op);
  }
}

LaneFn fast_function(AluOp op, DType dtype) {
  switch (dtype) {
    case DType::Bool: return bit_function<bool>(op);
    case DType::Int8: return integer_function<int8_t>(op);
    case DType::Int16: return integer_function<int16_t>(op);
    case DType::Int32: return integer_function<int32_t>(op);
    case DType::Int64: return integer_function<int64_t>(op);
    case DType::Uint8: return integer_function<uint8_t>(op);
    case DType::Uint16: return integer_function<uint16_t>(op);
    case DType::Uint32: return integer_function<uint32_t>(op);
    case DType::Uint64: return integer_function<uint64_t>(op);
    case DType::Float16:
    case DType::Bfloat16: return nullptr;
    case DType::Float32: return float_function<float>(op);
    case DType::Float64: return float_function<double>(op);
  }
  RUNE_UNREACHABLE();
}

// As Scalar::of(dtype of To, value).
template <class From, class To>
uint64_t convert(From value, [[maybe_unused]] DType to) {
  if constexpr (std::is_same_v<To, bool>) {
    return value != 0;
  } else if constexpr (std::is_floating_point_v<To> || !std::is_floating_point_v<From>) {
    return put(static_cast<To>(value));
  } else {
    return to_word(Scalar::of(to, static_cast<double>(value)));
  }
}

template <class From, class To>
void convert_lanes(uint64_t* dst, const uint64_t* a, const uint64_t*, const uint64_t*,
                   const Op& op) {
  for (uint32_t i = 0; i < op.lanes; ++i) dst[i] = convert<From, To>(get<From>(a[i]), op.to);
}

void cast_lanes(uint64_t* dst, const uint64_t* a, const uint64_t*, const uint64_t*, const Op& op) {
  for (uint32_t i = 0; i < op.lanes; ++i)
    dst[i] = to_word(Scalar::from_bits(op.from, a[i]).cast(op.to));
}

// Calls f with a value of the C++ type of the dtype; of float16 and bfloat16 with nullptr.
template <class F>
auto with_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::Bool: return f(false);
    case DType::Int8: return f(int8_t{});
    case DType::Int16: return f(int16_t{});
    case DType::Int32: return f(int32_t{});
    case DType::Int64: return f(int64_t{});
    case DType::Uint8: return f(uint8_t{});
    case DType::Uint16: return f(uint16_t{});
    case DType::Uint32: return f(uint32_t{});
    case DType::Uint64: return f(uint64_t{});
    case DType::Float16:
    case DType::Bfloat16: return f(nullptr);
    case DType::Float32: return f(float{});
    case DType::Float64: return f(double{});
  }
  RUNE_UNREACHABLE();
}

void bitcast_lanes(uint64_t* dst, const uint64_t* a, const uint64_t*, const uint64_t*,
                   const Op& op) {
  for (uint32_t i = 0; i < op.lanes; ++i) dst[i] = word_of_bits(op.to, a[i]);
}

// float16 and bfloat16 travel as their bits.
template <class T>
using Stored = std::conditional_t<std::is_same_v<T, std::nullptr_t>, uint16_t, T>;

}  // namespace

uint64_t to_word(const Scalar& value) {
  return is_float(value.dtype()) ? value.bits() : static_cast<uint64_t>(value.as_int64());
}

uint64_t word_of_bits(DType dtype, uint64_t bits) {
  return with_type(dtype, [&](auto zero) -> uint64_t {
    using T = Stored<decltype(zero)>;
    if constexpr (std::is_same_v<T, bool>)
      return (bits & 0xff) != 0;
    else
      return put(get<T>(bits));
  });
}

LaneFn alu_function(AluOp op, DType dtype) {
  if (op == AluOp::Where) return where_lanes;
  const LaneFn fast = fast_function(op, dtype);
  return fast ? fast : evaluate_lanes;
}

LaneFn cast_function(DType from, DType to) {
  return with_type(from, [&](auto a) -> LaneFn {
    return with_type(to, [&](auto b) -> LaneFn {
      using From = decltype(a);
      using To = decltype(b);
      if constexpr (std::is_same_v<From, std::nullptr_t> || std::is_same_v<To, std::nullptr_t>) {
        return cast_lanes;
      } else {
        return convert_lanes<From, To>;
      }
    });
  });
}

LaneFn bitcast_function() {
  return bitcast_lanes;
}

void read_elements(DType dtype, const std::byte* from, uint64_t* to, uint32_t count) {
  with_type(dtype, [&](auto zero) {
    using T = Stored<decltype(zero)>;
    // A bool is any byte, read as whether it is not 0.
    using Raw = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
    for (uint32_t i = 0; i < count; ++i) {
      Raw raw;
      std::memcpy(&raw, from + i * sizeof(Raw), sizeof(Raw));
      if constexpr (std::is_same_v<T, bool>)
        to[i] = raw != 0;
      else
        to[i] = put(raw);
    }
  });
}

void write_elements(DType dtype, const uint64_t* from, std::byte* to, uint32_t count) {
  with_type(dtype, [&](auto zero) {
    using T = Stored<decltype(zero)>;
    for (uint32_t i = 0; i < count; ++i) {
      const T value = get<T>(from[i]);
      std::memcpy(to + i * sizeof(T), &value, sizeof(T));
    }
  });
}

}  // namespace rune::lower::interpreter
