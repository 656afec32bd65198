#include "graph/numpy_float_bits.h"

#include <cmath>

namespace rune::graph {

namespace {

// The binary format of a float dtype, and the integers that have its bits.
struct Format {
  int mantissa_bits, exponent_bits;
  DType bits;  // signed, so that the sign is its sign

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  uint64_t exponent_mask() const { return ((uint64_t{1} << exponent_bits) - 1) << mantissa_bits; }
};

Format format_of(DType dtype) {
  if (dtype == DType::Float16) return {10, 5, DType::Int16};
  if (dtype == DType::Bfloat16) return {7, 8, DType::Int16};
  return dtype == DType::Float32 ? Format{23, 8, DType::Int32} : Format{52, 11, DType::Int64};
}

DType unsigned_of(DType dtype) {
  switch (size_of(dtype)) {
    case 1: return DType::Uint8;
    case 2: return DType::Uint16;
    case 4: return DType::Uint32;
    default: return DType::Uint64;
  }
}

}  // namespace

Operands FloatBits::frexp(NumpyBuilder& n, const Operands& xs) {
  Builder& b = n.b_;
  const DType dtype = n.float_type(xs);
  const Format f = format_of(dtype);
  const auto constant = [&](uint64_t bits) { return b.constant(Scalar::from_bits(f.bits, bits)); };
  const Value x = n.as(xs[0], dtype, "frexp");
  // Subnormal numbers are scaled to normal ones.
  const int scale = f.mantissa_bits + 1;
  const Value tiny = b.constant(Scalar::from_bits(dtype, uint64_t{1} << f.mantissa_bits));
  const Value is_tiny = n.elementwise(AluOp::Cmplt, {b.alu(AluOp::Abs, {x}), tiny});
  const Value factor = b.constant(
      Scalar::from_bits(dtype, static_cast<uint64_t>(f.bias() + scale) << f.mantissa_bits));
  const Value normal = b.alu(AluOp::Where, {is_tiny, n.elementwise(AluOp::Mul, {x, factor}), x});
  const Value bits = b.bitcast(normal, f.bits);
  const Value field = n.elementwise(AluOp::And, {bits, constant(f.exponent_mask())});
  const Value biased =
      b.cast(n.elementwise(AluOp::Shr, {field, constant(static_cast<uint64_t>(f.mantissa_bits))}),
             DType::Int32);
  const auto int32 = [&](int value) { return b.constant(Scalar::of(DType::Int32, value)); };
  const Value bias =
      n.elementwise(AluOp::Where, {is_tiny, int32(f.bias() - 1 + scale), int32(f.bias() - 1)});
  const Value exponent = b.alu(AluOp::Sub, {biased, bias});
  const Value half = constant(static_cast<uint64_t>(f.bias() - 1) << f.mantissa_bits);
  const Value rest = n.elementwise(AluOp::Sub, {bits, field});
  const Value fraction = b.bitcast(n.elementwise(AluOp::Or, {rest, half}), dtype);
  const Value itself =
      n.elementwise(AluOp::Or, {n.elementwise(AluOp::Cmpeq, {x, n.scalar(dtype, 0)}),
                                b.alu(AluOp::Not, {b.alu(AluOp::Isfinite, {x})})});
  return {b.alu(AluOp::Where, {itself, x, fraction}),
          n.elementwise(AluOp::Where, {itself, int32(0), exponent})};
}

Operands FloatBits::ldexp(NumpyBuilder& n, const Operands& xs) {
  Builder& b = n.b_;
  const DType of_exponent = n.dtype(xs[1]);
  if (!xs[1].weak && (is_float(of_exponent) || of_exponent == DType::Uint64))
    user_error(ErrorKind::Type, "ldexp: cannot use exponents of ", numpy_name(of_exponent),
               " (NumPy has no loop for it)");
  if (xs[1].weak == Kind::Float)
    user_error(ErrorKind::Type,
               "ldexp: cannot use a Python float as exponent (it must be an integer)");
  DType result = n.float_type({xs[0]});
  // A Python int takes NumPy's first loop; beside bool it is an int64.
  if (xs[0].weak == Kind::Int && !xs[1].weak && !is_bool(of_exponent)) result = DType::Float16;
  const bool beside_bool = xs[1].weak == Kind::Int && !xs[0].weak && is_bool(n.dtype(xs[0]));
  const bool wide =
      xs[1].weak ? beside_bool : of_exponent == DType::Int64 || of_exponent == DType::Uint32;
  if (result == DType::Bfloat16 && wide) result = DType::Float32;  // ml_dtypes has no such loop
  // 16-bit numbers are exact in float32 after all scalings that leave them in their own range.
  const DType dtype = size_of(result) == 2 ? DType::Float32 : result;
  const Format f = format_of(dtype);
  Value exponent = n.as(xs[1], wide ? DType::Int64 : DType::Int32, "ldexp");
  const auto values =
      n.broadcast_all("ldexp", {b.cast(n.as(xs[0], result, "ldexp"), dtype), exponent});
  // Beyond, every result is 0 or infinite.
  const DType integer = b.dtype(values[1]);
  const auto limit = [&](int sign) { return b.constant(Scalar::of(integer, sign * 4 * f.bias())); };
  const Value above = n.elementwise(AluOp::Max, {values[1], limit(-1)});
  const Value bounded = n.elementwise(AluOp::Min, {above, limit(1)});
  const Value x = b.alu(AluOp::Ldexp, {values[0], b.cast(bounded, dtype)});
  return {b.cast(x, result)};
}

Operands FloatBits::nextafter(NumpyBuilder& n, const Operands& xs) {
  Builder& b = n.b_;
  const DType dtype = n.float_type(xs);
  const Format f = format_of(dtype);
  const auto v = n.broadcast_all(
      "nextafter", {n.as(xs[0], dtype, "nextafter"), n.as(xs[1], dtype, "nextafter")});
  const Value x = v[0], y = v[1];
  const auto constant = [&](uint64_t bits) { return b.constant(Scalar::from_bits(f.bits, bits)); };
  const Value zero = n.scalar(dtype, 0);
  const Value bits = b.bitcast(x, f.bits);
  const Value grows =
      b.alu(AluOp::Cmpeq, {b.alu(AluOp::Cmplt, {x, y}), n.elementwise(AluOp::Cmplt, {zero, x})});
  const Value step = n.elementwise(AluOp::Where, {grows, constant(1), constant(~uint64_t{0})});
  const Value next = b.bitcast(b.alu(AluOp::Add, {bits, step}), dtype);
  const Value smallest = b.constant(Scalar::from_bits(dtype, 1));
  const Value from_zero = n.elementwise(AluOp::Copysign, {smallest, y});
  Value result = b.alu(AluOp::Where, {n.elementwise(AluOp::Cmpeq, {x, zero}), from_zero, next});
  const Value equal = b.alu(AluOp::Cmpeq, {x, y});
  result = b.alu(AluOp::Where, {equal, dtype == DType::Float16 ? x : y, result});
  const Value is_nan = b.alu(AluOp::Or, {b.alu(AluOp::Isnan, {x}), b.alu(AluOp::Isnan, {y})});
  return {
      n.elementwise(AluOp::Where, {is_nan, b.constant(Scalar::of(dtype, std::nan(""))), result})};
}

Operands FloatBits::spacing(NumpyBuilder& n, const Operands& xs) {
  Builder& b = n.b_;
  const DType dtype = n.float_type(xs);
  const Format f = format_of(dtype);
  const Value x = n.as(xs[0], dtype, "spacing");
  const Value bits = b.bitcast(x, f.bits);
  const auto constant = [&](uint64_t v) { return b.constant(Scalar::from_bits(f.bits, v)); };
  const Value zero = n.scalar(dtype, 0);
  Value step = constant(1);
  if (dtype == DType::Float16) {
    const Value negative = n.elementwise(AluOp::Cmplt, {x, zero});
    step = n.elementwise(AluOp::Where, {negative, constant(~uint64_t{0}), step});
  }
  const Value next = b.bitcast(n.elementwise(AluOp::Add, {bits, step}), dtype);
  const Value distance = b.alu(AluOp::Sub, {next, x});
  Value smallest = b.constant(Scalar::from_bits(dtype, 1));
  if (dtype == DType::Bfloat16) smallest = n.elementwise(AluOp::Copysign, {smallest, x});
  const Value is_zero = n.elementwise(AluOp::Cmpeq, {x, zero});
  const Value result = n.elementwise(AluOp::Where, {is_zero, smallest, distance});
  const Value nan = b.constant(Scalar::of(dtype, std::nan("")));
  return {n.elementwise(AluOp::Where, {b.alu(AluOp::Isfinite, {x}), result, nan})};
}

Operands FloatBits::bitwise_count(NumpyBuilder& n, const Operands& xs) {
  Builder& b = n.b_;
  DType from = n.dtype(xs[0]);
  if (is_float(from))
    user_error(ErrorKind::Type, "bitwise_count: cannot compute on ", numpy_name(from),
               " (NumPy has no loop for it)");
  if (is_bool(from)) from = DType::Int8;
  Value x = n.as(xs[0], from, "bitwise_count");
  if (is_signed(from)) x = b.alu(AluOp::Abs, {x});
  const DType dtype = unsigned_of(from);
  x = b.cast(x, dtype);
  const auto constant = [&](uint64_t v) { return b.constant(Scalar::of(dtype, v)); };
  const auto low_fields = [&](Value v, uint64_t mask) {
    return n.elementwise(AluOp::And, {v, constant(mask)});
  };
  const auto shifted = [&](Value v, uint64_t by) {
    return n.elementwise(AluOp::Shr, {v, constant(by)});
  };
  // Counts of 1, 2 and 4 bits side by side become counts of twice as many (Warren, Hacker's
  // Delight, 5-1); the counts of bytes are added up in the highest byte by a product.
  x = b.alu(AluOp::Sub, {x, low_fields(shifted(x, 1), 0x5555555555555555)});
  x = b.alu(AluOp::Add,
            {low_fields(x, 0x3333333333333333), low_fields(shifted(x, 2), 0x3333333333333333)});
  x = low_fields(b.alu(AluOp::Add, {x, shifted(x, 4)}), 0x0f0f0f0f0f0f0f0f);
  if (size_of(dtype) > 1) {
    x = n.elementwise(AluOp::Mul, {x, constant(0x0101010101010101)});
    x = shifted(x, static_cast<uint64_t>(bits_of(dtype) - 8));
  }
  return {b.cast(x, DType::Uint8)};
}

}  // namespace rune::graph
