#include "alu/eval.h"

#include <cmath>
#include <limits>

#include "base/error.h"

namespace rune {

namespace {

// NumPy's npy_divmod on doubles: floor division and the remainder that goes with it.
struct FloorDivision {
  double quotient;
  double remainder;
};

FloorDivision floor_division(double a, double b) {
  double remainder = std::fmod(a, b);
  if (b == 0) return {a / b, remainder};
  double quotient = (a - remainder) / b;
  if (remainder != 0) {
    if ((b < 0) != (remainder < 0)) {
      remainder += b;
      quotient -= 1;
    }
  } else {
    remainder = std::copysign(0.0, b);
  }
  if (quotient != 0) {
    const double floored = std::floor(quotient);
    quotient = quotient - floored > 0.5 ? floored + 1 : floored;
  } else {
    quotient = std::copysign(0.0, a / b);
  }
  return {quotient, remainder};
}

// float32 division must round each step to float32 as NumPy's does.
FloorDivision floor_division(float a, float b) {
  float remainder = std::fmod(a, b);
  if (b == 0) return {a / b, remainder};
  float quotient = (a - remainder) / b;
  if (remainder != 0) {
    if ((b < 0) != (remainder < 0)) {
      remainder += b;
      quotient -= 1;
    }
  } else {
    remainder = std::copysign(0.0f, b);
  }
  if (quotient != 0) {
    const float floored = std::floor(quotient);
    quotient = quotient - floored > 0.5f ? floored + 1 : floored;
  } else {
    quotient = std::copysign(0.0f, a / b);
  }
  return {quotient, remainder};
}

FloorDivision floor_division_of(DType dtype, double a, double b) {
  return dtype == DType::Float64 ? floor_division(a, b)
                                 : floor_division(static_cast<float>(a), static_cast<float>(b));
}

double pow_of(DType dtype, double a, double b) {
  return dtype == DType::Float64 ? std::pow(a, b)
                                 : static_cast<double>(std::pow(static_cast<long double>(a),
                                                                static_cast<long double>(b)));
}

template <class T>
T integer_power(T base, T exponent) {
  if constexpr (std::is_signed_v<T>) {
    if (exponent < 0) {
      if (base == 1) return 1;
      if (base == -1) return exponent & 1 ? -1 : 1;
      return 0;
    }
  }
  uint64_t result = 1, factor = static_cast<uint64_t>(base);
  for (uint64_t e = static_cast<uint64_t>(exponent); e; e >>= 1) {
    if (e & 1) result *= factor;
    factor *= factor;
  }
  return static_cast<T>(result);
}

// Integers as 64 bits of the right signedness; the caller wraps to the width.
template <class T>
T integer_binary(AluOp op, T a, T b, int width) {
  using U = uint64_t;
  constexpr bool kSigned = std::is_signed_v<T>;
  switch (op) {
    case AluOp::Add: return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
    case AluOp::Sub: return static_cast<T>(static_cast<U>(a) - static_cast<U>(b));
    case AluOp::Mul: return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
    case AluOp::Div:
    case AluOp::Idiv:
    case AluOp::Mod:
    case AluOp::Fmod: {
      if (b == 0) return 0;
      if (kSigned && b == static_cast<T>(-1))
        return op == AluOp::Div || op == AluOp::Idiv ? static_cast<T>(-static_cast<U>(a)) : T{0};
      const T quotient = a / b, remainder = a % b;
      const bool adjust = remainder != 0 && ((remainder < 0) != (b < 0));
      if (op == AluOp::Div) return quotient;
      if (op == AluOp::Fmod) return remainder;
      if (op == AluOp::Idiv) return adjust ? quotient - 1 : quotient;
      return adjust ? remainder + b : remainder;
    }
    case AluOp::Pow: return integer_power(a, b);
    case AluOp::Max: return a > b ? a : b;
    case AluOp::Min: return a < b ? a : b;
    case AluOp::Xor: return a ^ b;
    case AluOp::Or: return a | b;
    case AluOp::And: return a & b;
    case AluOp::Shl:
      return b < 0 || static_cast<U>(b) >= static_cast<U>(width)
                 ? T{0}
                 : static_cast<T>(static_cast<U>(a) << b);
    case AluOp::Shr:
      if (b < 0 || static_cast<U>(b) >= static_cast<U>(width))
        return a < 0 ? static_cast<T>(-1) : T{0};
      return static_cast<T>(a >> b);
    default: RUNE_UNREACHABLE(name_of(op));
  }
}

template <class T>
bool compare(AluOp op, T a, T b) {
  switch (op) {
    case AluOp::Cmplt: return a < b;
    case AluOp::Cmple: return a <= b;
    case AluOp::Cmpeq: return a == b;
    case AluOp::Cmpne: return a != b;
    default: RUNE_UNREACHABLE(name_of(op));
  }
}

bool is_comparison(AluOp op) {
  return op == AluOp::Cmplt || op == AluOp::Cmple || op == AluOp::Cmpeq || op == AluOp::Cmpne;
}

double float_binary(AluOp op, DType dtype, double a, double b) {
  switch (op) {
    case AluOp::Add: return a + b;
    case AluOp::Sub: return a - b;
    case AluOp::Mul: return a * b;
    case AluOp::Fdiv: return a / b;
    case AluOp::Idiv: return floor_division_of(dtype, a, b).quotient;
    case AluOp::Mod: return floor_division_of(dtype, a, b).remainder;
    case AluOp::Fmod: return std::fmod(a, b);
    case AluOp::Pow: return pow_of(dtype, a, b);
    case AluOp::Max:
      return std::isnan(a)     ? a
             : std::isnan(b)   ? b
             : a > b           ? a
             : b > a           ? b
             : std::signbit(a) ? b
                               : a;
    case AluOp::Min:
      return std::isnan(a)     ? a
             : std::isnan(b)   ? b
             : a < b           ? a
             : b < a           ? b
             : std::signbit(a) ? a
                               : b;
    case AluOp::Fmax:
      return std::isnan(a)     ? b
             : std::isnan(b)   ? a
             : a > b           ? a
             : b > a           ? b
             : std::signbit(a) ? b
                               : a;
    case AluOp::Fmin:
      return std::isnan(a)     ? b
             : std::isnan(b)   ? a
             : a < b           ? a
             : b < a           ? b
             : std::signbit(a) ? a
                               : b;
    case AluOp::Atan2: return std::atan2(a, b);
    case AluOp::Copysign: return std::copysign(a, b);
    case AluOp::Hypot: return std::hypot(a, b);
    case AluOp::Ldexp:
      return std::isnan(a) || std::isnan(b)
                 ? a + b
                 : std::ldexp(a, static_cast<int>(std::clamp(b, -1e5, 1e5)));
    default: RUNE_UNREACHABLE(name_of(op));
  }
}

double float_unary(AluOp op, double a) {
  switch (op) {
    case AluOp::Neg: return -a;
    case AluOp::Abs: return std::fabs(a);
    case AluOp::Sign: return std::isnan(a) ? a : (a > 0) - (a < 0);
    case AluOp::Recip: return 1 / a;
    case AluOp::Sqrt: return std::sqrt(a);
    case AluOp::Cbrt: return std::cbrt(a);
    case AluOp::Exp: return std::exp(a);
    case AluOp::Exp2: return std::exp2(a);
    case AluOp::Expm1: return std::expm1(a);
    case AluOp::Log: return std::log(a);
    case AluOp::Log2: return std::log2(a);
    case AluOp::Log10: return std::log10(a);
    case AluOp::Log1p: return std::log1p(a);
    case AluOp::Sin: return std::sin(a);
    case AluOp::Cos: return std::cos(a);
    case AluOp::Tan: return std::tan(a);
    case AluOp::Asin: return std::asin(a);
    case AluOp::Acos: return std::acos(a);
    case AluOp::Atan: return std::atan(a);
    case AluOp::Sinh: return std::sinh(a);
    case AluOp::Cosh: return std::cosh(a);
    case AluOp::Tanh: return std::tanh(a);
    case AluOp::Asinh: return std::asinh(a);
    case AluOp::Acosh: return std::acosh(a);
    case AluOp::Atanh: return std::atanh(a);
    case AluOp::Erf: return std::erf(a);
    case AluOp::Floor: return std::floor(a);
    case AluOp::Ceil: return std::ceil(a);
    case AluOp::Trunc: return std::trunc(a);
    case AluOp::Rint: return std::nearbyint(a);
    default: RUNE_UNREACHABLE(name_of(op));
  }
}

Scalar evaluate_unary(AluOp op, const Scalar& a) {
  const DType dtype = a.dtype();
  switch (op) {
    case AluOp::Isnan: return Scalar::of(DType::Bool, std::isnan(a.as_double()));
    case AluOp::Isinf: return Scalar::of(DType::Bool, std::isinf(a.as_double()));
    case AluOp::Isfinite: return Scalar::of(DType::Bool, std::isfinite(a.as_double()));
    case AluOp::Signbit: return Scalar::of(DType::Bool, std::signbit(a.as_double()));
    default: break;
  }
  if (is_float(dtype)) return Scalar::of(dtype, float_unary(op, a.as_double()));
  const int64_t v = a.as_int64();
  switch (op) {
    case AluOp::Not: return is_bool(dtype) ? Scalar::of(dtype, v == 0) : Scalar::of(dtype, ~v);
    case AluOp::Neg: return Scalar::of(dtype, static_cast<int64_t>(-static_cast<uint64_t>(v)));
    case AluOp::Abs:
      return v < 0 && kind(dtype) == Kind::Int
                 ? Scalar::of(dtype, static_cast<int64_t>(-static_cast<uint64_t>(v)))
                 : a;
    case AluOp::Sign:
      return kind(dtype) == Kind::Int ? Scalar::of(dtype, (v > 0) - (v < 0))
                                      : Scalar::of(dtype, v != 0);
    default: RUNE_UNREACHABLE(name_of(op));
  }
}

Scalar evaluate_binary(AluOp op, const Scalar& a, const Scalar& b) {
  const DType dtype = a.dtype();
  if (is_float(dtype)) {
    if (is_comparison(op))
      return Scalar::of(DType::Bool, compare(op, a.as_double(), b.as_double()));
    return Scalar::of(dtype, float_binary(op, dtype, a.as_double(), b.as_double()));
  }
  if (kind(dtype) == Kind::Int) {
    if (is_comparison(op)) return Scalar::of(DType::Bool, compare(op, a.as_int64(), b.as_int64()));
    return Scalar::of(dtype, integer_binary(op, a.as_int64(), b.as_int64(), bits_of(dtype)));
  }
  if (is_comparison(op)) return Scalar::of(DType::Bool, compare(op, a.as_uint64(), b.as_uint64()));
  return Scalar::of(dtype, integer_binary(op, a.as_uint64(), b.as_uint64(), bits_of(dtype)));
}

Scalar evaluate_mulacc(const Scalar& a, const Scalar& b, const Scalar& c) {
  const DType dtype = a.dtype();
  if (dtype == DType::Float64)
    return Scalar::of(dtype, std::fma(a.as_double(), b.as_double(), c.as_double()));
  if (is_float(dtype))
    return Scalar::of(dtype, static_cast<double>(std::fma(static_cast<float>(a.as_double()),
                                                          static_cast<float>(b.as_double()),
                                                          static_cast<float>(c.as_double()))));
  return evaluate_binary(AluOp::Add, evaluate_binary(AluOp::Mul, a, b), c);
}

}  // namespace

Scalar evaluate(AluOp op, std::span<const Scalar> operands) {
  RUNE_CHECK(static_cast<int>(operands.size()) == info(op).arity, name_of(op));
  switch (operands.size()) {
    case 1: return evaluate_unary(op, operands[0]);
    case 2: return evaluate_binary(op, operands[0], operands[1]);
    default:
      if (op == AluOp::Where) return operands[0].as_bool() ? operands[1] : operands[2];
      return evaluate_mulacc(operands[0], operands[1], operands[2]);
  }
}

Scalar identity(ReduceOp op, DType dtype) {
  switch (op) {
    case ReduceOp::Add: return Scalar::zero(dtype);
    case ReduceOp::Prod: return Scalar::one(dtype);
    case ReduceOp::Max: return Scalar::lowest(dtype);
    case ReduceOp::Min: return Scalar::highest(dtype);
  }
  RUNE_UNREACHABLE();
}

Scalar neutral(ReduceOp op, DType dtype) {
  const bool sums_floats = op == ReduceOp::Add && is_float(dtype);
  return sums_floats ? Scalar::of(dtype, -0.0) : identity(op, dtype);
}

}  // namespace rune
