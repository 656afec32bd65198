// Conversions between dtypes for the LLVM IR renderer. LLVM's fptosi gives poison for values out of
// range, so a range check selects another result for these.
#include "render/llvm_ir_writer.h"

namespace rune::render::llvm {

namespace {

constexpr double kTwo31 = 2147483648.0;
constexpr double kTwo63 = 9223372036854775808.0;

bool is_small_float(DType dtype) {
  return dtype == DType::Float16 || dtype == DType::Bfloat16;
}

Value bits_constant(DType dtype, uint64_t bits, int lanes) {
  return constant(Scalar::from_bits(dtype, bits), lanes);
}

Value magnitude(Writer& w, const Value& x) {
  return w.call("llvm.fabs." + mangled(x.dtype, x.lanes), x.dtype, x.lanes, {x});
}

// Converts float32 or float64 to int32 or int64. NaN and values out of range give INT_MIN. One
// comparison checks both ends of the range, because -2^31 itself gives INT_MIN either way.
Value to_signed(Writer& w, const Value& x, DType to) {
  const double limit = to == DType::Int32 ? kTwo31 : kTwo63;
  const Value in_range = w.compare("fcmp olt", magnitude(w, x), constant(x.dtype, limit, x.lanes));
  const Value converted = w.convert("fptosi", x, to);
  const uint64_t lowest = to == DType::Int32 ? uint64_t{1} << 31 : uint64_t{1} << 63;
  return w.select(in_range, converted, bits_constant(to, lowest, x.lanes));
}

// Values from 2^63 are converted as value - 2^63 with the top bit flipped, the others as signed.
Value to_uint64(Writer& w, const Value& x) {
  const Value limit = constant(x.dtype, kTwo63, x.lanes);
  const Value big = w.compare("fcmp oge", x, limit);
  const Value less = w.binary("fsub", x, limit);
  const Value low = to_signed(w, w.select(big, less, x), DType::Int64);
  const Value bit = w.select(big, bits_constant(DType::Int64, uint64_t{1} << 63, x.lanes),
                             constant(DType::Int64, 0, x.lanes));
  Value result = w.binary("xor", low, bit);
  result.dtype = DType::Uint64;
  return result;
}

Value float_to_integer(Writer& w, const Value& x, DType to) {
  switch (to) {
    case DType::Uint64: return to_uint64(w, x);
    case DType::Int64: return to_signed(w, x, to);
    case DType::Uint32: return w.convert("trunc", to_signed(w, x, DType::Int64), to);
    case DType::Int32: return to_signed(w, x, to);
    default: return w.convert("trunc", to_signed(w, x, DType::Int32), to);
  }
}

// Rounds float64 to float32 such that a second rounding, to fewer bits, gives the same as a single
// rounding of the float64 (Boldo and Melquiond 2008). It rounds towards zero and sets the last bit
// if the result is inexact.
Value round_to_odd(Writer& w, const Value& x) {
  const Value narrow = w.convert("fptrunc", x, DType::Float32);
  const Value back = w.convert("fpext", narrow, DType::Float64);
  const Value above = w.compare("fcmp ogt", magnitude(w, back), magnitude(w, x));
  const Value inexact = w.compare("fcmp une", back, x);
  Value bits = w.convert("bitcast", narrow, DType::Int32);
  bits = w.binary("sub", bits, w.convert("zext", above, DType::Int32));
  bits = w.binary("or", bits, w.convert("zext", inexact, DType::Int32));
  return w.convert("bitcast", bits, DType::Float32);
}

Value half_from(Writer& w, const Value& x) {
  const Value source = x.dtype == DType::Float64 ? round_to_odd(w, x) : x;
  const std::string half = vector_type("half", x.lanes);
  const std::string narrow = w.emit("fptrunc ", type_text(source), ' ', source.text, " to ", half);
  return w.value(DType::Float16, x.lanes, "bitcast ", half, ' ', narrow, " to ",
                 type_text(DType::Float16, x.lanes));
}

Value half_to_float(Writer& w, const Value& x) {
  const std::string half = vector_type("half", x.lanes);
  const std::string bits = w.emit("bitcast ", type_text(x), ' ', x.text, " to ", half);
  return w.value(DType::Float32, x.lanes, "fpext ", half, ' ', bits, " to ",
                 type_text(DType::Float32, x.lanes));
}

// Rounds to nearest even, by integer arithmetic on the float32's bits. Every NaN becomes the quiet
// one.
Value bfloat16_from(Writer& w, const Value& x) {
  const int n = x.lanes;
  const Value f = x.dtype == DType::Float64 ? round_to_odd(w, x) : x;
  const Value bits = w.convert("bitcast", f, DType::Uint32);
  const Value sixteen = constant(DType::Uint32, 16, n);
  const Value high = w.binary("lshr", bits, sixteen);
  const Value odd = w.binary("and", high, constant(DType::Uint32, 1, n));
  const Value bias = w.binary("add", odd, constant(DType::Uint32, 0x7fff, n));
  const Value rounded = w.binary("lshr", w.binary("add", bits, bias), sixteen);
  const Value sign = w.binary("and", high, constant(DType::Uint32, 0x8000, n));
  const Value quiet = w.binary("or", sign, constant(DType::Uint32, 0x7fc0, n));
  const Value nan = w.compare("fcmp uno", f, f);
  return w.convert("trunc", w.select(nan, quiet, rounded), DType::Bfloat16);
}

Value bfloat16_to_float(Writer& w, const Value& x) {
  const Value wide = w.convert("zext", x, DType::Uint32);
  const Value bits = w.binary("shl", wide, constant(DType::Uint32, 16, x.lanes));
  return w.convert("bitcast", bits, DType::Float32);
}

Value integer_to_float(Writer& w, const Value& x, DType to) {
  return w.convert(is_signed(x.dtype) ? "sitofp" : "uitofp", x, to);
}

Value integer_to_integer(Writer& w, const Value& x, DType to) {
  if (size_of(to) == size_of(x.dtype)) return {x.text, to, x.lanes};
  if (size_of(to) < size_of(x.dtype)) return w.convert("trunc", x, to);
  return w.convert(is_signed(x.dtype) ? "sext" : "zext", x, to);
}

Value to_bool(Writer& w, const Value& x) {
  const Value zero = constant(Scalar::zero(x.dtype), x.lanes);
  return w.compare(is_float(x.dtype) ? "fcmp une" : "icmp ne", x, zero);
}

}  // namespace

Value emit_cast(Writer& w, const Value& x, DType to) {
  if (x.dtype == to) return x;
  if (x.dtype == DType::Float16) return emit_cast(w, half_to_float(w, x), to);
  if (x.dtype == DType::Bfloat16) return emit_cast(w, bfloat16_to_float(w, x), to);
  if (is_bool(x.dtype))
    return w.select(x, constant(Scalar::one(to), x.lanes), constant(Scalar::zero(to), x.lanes));
  if (is_bool(to)) return to_bool(w, x);
  if (is_integer(x.dtype)) {
    if (is_integer(to)) return integer_to_integer(w, x, to);
    if (is_small_float(to)) return emit_cast(w, integer_to_float(w, x, DType::Float32), to);
    return integer_to_float(w, x, to);
  }
  if (is_integer(to)) return float_to_integer(w, x, to);
  if (to == DType::Float16) return half_from(w, x);
  if (to == DType::Bfloat16) return bfloat16_from(w, x);
  return w.convert(to == DType::Float64 ? "fpext" : "fptrunc", x, to);
}

Value emit_bitcast(Writer& w, const Value& x, DType to) {
  RUNE_CHECK(size_of(x.dtype) == size_of(to), "bitcast of ", name_of(x.dtype), " to ", name_of(to));
  if (is_bool(x.dtype)) return is_bool(to) ? x : w.convert("zext", x, to);
  if (is_bool(to)) return to_bool(w, x);
  if (type_text(x) == type_text(to, x.lanes)) return {x.text, to, x.lanes};
  return w.convert("bitcast", x, to);
}

}  // namespace rune::render::llvm
