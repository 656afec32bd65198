// Scalar operations for the LLVM IR renderer.
#include <bit>
#include <optional>

#include "alu/alu.h"
#include "render/llvm_ir_writer.h"

namespace rune::render::llvm {

namespace {

// The C library's name of an operation on float64; the float32 one has an `f` behind it.
const char* libm_name(AluOp op) {
  switch (op) {
    case AluOp::Fmod: return "fmod";
    case AluOp::Pow: return "pow";
    case AluOp::Atan2: return "atan2";
    case AluOp::Hypot: return "hypot";
    case AluOp::Cbrt: return "cbrt";
    case AluOp::Exp: return "exp";
    case AluOp::Exp2: return "exp2";
    case AluOp::Expm1: return "expm1";
    case AluOp::Log: return "log";
    case AluOp::Log2: return "log2";
    case AluOp::Log10: return "log10";
    case AluOp::Log1p: return "log1p";
    case AluOp::Sin: return "sin";
    case AluOp::Cos: return "cos";
    case AluOp::Tan: return "tan";
    case AluOp::Asin: return "asin";
    case AluOp::Acos: return "acos";
    case AluOp::Atan: return "atan";
    case AluOp::Sinh: return "sinh";
    case AluOp::Cosh: return "cosh";
    case AluOp::Tanh: return "tanh";
    case AluOp::Asinh: return "asinh";
    case AluOp::Acosh: return "acosh";
    case AluOp::Atanh: return "atanh";
    case AluOp::Erf: return "erf";
    default: return nullptr;
  }
}

[[noreturn]] void not_native(AluOp op, const Value& x) {
  RUNE_UNREACHABLE("llvm_ir: cannot render ", name_of(op), " of ", name_of(x.dtype),
                   " (decompose rewrites it)");
}

// One call a lane.
Value libm(Writer& w, const char* name, const std::vector<Value>& args) {
  const Value& first = args[0];
  const std::string function = first.dtype == DType::Float32 ? std::string(name) + 'f' : name;
  Value result{"poison", first.dtype, first.lanes};
  for (int lane = 0; lane < first.lanes; ++lane) {
    std::vector<Value> scalars;
    for (const Value& arg : args) scalars.push_back(w.extract(arg, lane));
    const Value r = w.call(function, first.dtype, 1, scalars);
    result = first.lanes == 1 ? r : w.insert(result, r, lane);
  }
  return result;
}

Value intrinsic(Writer& w, const char* name, const std::vector<Value>& args) {
  const Value& x = args[0];
  return w.call(concat("llvm.", name, '.', mangled(x.dtype, x.lanes)), x.dtype, x.lanes, args);
}

Value bool_not(Writer& w, const Value& x) {
  return w.binary("xor", x, constant(DType::Bool, 1, x.lanes));
}

// The bits of a float constant that is the same in all lanes, as the double that equals it.
std::optional<double> constant_of(const Value& x) {
  const size_t at = x.text.find("0x");
  if (at == std::string::npos || x.text[0] == '%' || x.text[0] == '<') return std::nullopt;
  return std::bit_cast<double>(
      static_cast<uint64_t>(std::stoull(x.text.substr(at, 18), nullptr, 16)));
}

// `a op b ? a : b` is one instruction on x86, which gives b for NaN and for two zeros, as NumPy
// does; llvm.maximum would order the zeros at twice the cost. `checked` is the operand returned if
// it is NaN (maximum) or whose being NaN gives the other (fmax). A constant that is not NaN needs
// no check, on whichever side it is; to a zero on the right goes what equals it, a zero of any
// sign.
Value extremum(Writer& w, AluOp op, const Value& a, const Value& b) {
  const bool is_max = op == AluOp::Max || op == AluOp::Fmax;
  const char* before = is_max ? "fcmp ogt" : "fcmp olt";
  const bool propagates = op == AluOp::Max || op == AluOp::Min;
  const std::optional<double> limit = constant_of(b);
  if (propagates && limit && *limit == *limit) {
    if (*limit != 0) return w.select(w.compare(before, b, a), b, a);
    return w.select(w.compare(is_max ? "fcmp ole" : "fcmp oge", a, b), b, a);
  }
  const Value first = w.select(w.compare(before, a, b), a, b);
  const Value& checked = propagates ? a : b;
  const std::optional<double> known = constant_of(checked);
  if (known && *known == *known) return first;
  return w.select(w.compare("fcmp uno", checked, checked), a, first);
}

// Vector division of integers below 64 bits by way of floats that hold the operands exactly: the
// rounded quotient truncates to the true one, since it differs from the next integer by at least 1
// / divisor.
Value divide(Writer& w, const Value& a, const Value& b) {
  const bool is_constant = b.text[0] != '%';
  if (a.lanes == 1 || size_of(a.dtype) == 8 || is_constant)
    return w.binary(is_signed(a.dtype) ? "sdiv" : "udiv", a, b);
  const DType wide = size_of(a.dtype) == 4 ? DType::Float64 : DType::Float32;
  const Value quotient = w.binary("fdiv", emit_cast(w, a, wide), emit_cast(w, b, wide));
  return w.convert(is_signed(a.dtype) ? "fptosi" : "fptoui", quotient, a.dtype);
}

Value remainder(Writer& w, const Value& a, const Value& b) {
  if (a.lanes == 1 || b.text[0] != '%') return w.binary(is_signed(a.dtype) ? "srem" : "urem", a, b);
  return w.binary("sub", a, w.binary("mul", divide(w, a, b), b));
}

Value boolean(Writer& w, AluOp op, const std::vector<Value>& args) {
  const Value& a = args[0];
  const Value& b = args.back();
  switch (op) {
    case AluOp::Not: return bool_not(w, a);
    case AluOp::Max:
    case AluOp::Or: return w.binary("or", a, b);
    case AluOp::Min:
    case AluOp::And: return w.binary("and", a, b);
    case AluOp::Xor:
    case AluOp::Cmpne: return w.binary("xor", a, b);
    case AluOp::Cmpeq: return bool_not(w, w.binary("xor", a, b));
    case AluOp::Cmplt: return w.binary("and", bool_not(w, a), b);
    case AluOp::Cmple: return w.binary("or", bool_not(w, a), b);
    default: not_native(op, a);
  }
}

Value integer(Writer& w, AluOp op, const std::vector<Value>& args) {
  const Value& a = args[0];
  const Value& b = args.back();
  const bool is_signed_dtype = is_signed(a.dtype);
  const Value zero = constant(a.dtype, 0, a.lanes);
  switch (op) {
    case AluOp::Add: return w.binary("add", a, b);
    case AluOp::Sub: return w.binary("sub", a, b);
    case AluOp::Mul: return w.binary("mul", a, b);
    case AluOp::Mulacc: return w.binary("add", w.binary("mul", a, args[1]), b);
    case AluOp::Div: return divide(w, a, b);
    case AluOp::Fmod: return remainder(w, a, b);
    case AluOp::Max: return intrinsic(w, is_signed_dtype ? "smax" : "umax", args);
    case AluOp::Min: return intrinsic(w, is_signed_dtype ? "smin" : "umin", args);
    case AluOp::Cmplt: return w.compare(is_signed_dtype ? "icmp slt" : "icmp ult", a, b);
    case AluOp::Cmple: return w.compare(is_signed_dtype ? "icmp sle" : "icmp ule", a, b);
    case AluOp::Cmpeq: return w.compare("icmp eq", a, b);
    case AluOp::Cmpne: return w.compare("icmp ne", a, b);
    case AluOp::Xor: return w.binary("xor", a, b);
    case AluOp::Or: return w.binary("or", a, b);
    case AluOp::And: return w.binary("and", a, b);
    case AluOp::Shl: return w.binary("shl", a, b);
    case AluOp::Shr: return w.binary(is_signed_dtype ? "ashr" : "lshr", a, b);
    case AluOp::Neg: return w.binary("sub", zero, a);
    case AluOp::Not: return w.binary("xor", a, constant(a.dtype, -1, a.lanes));
    case AluOp::Abs: {
      if (!is_signed_dtype) return a;
      const std::string type = type_text(a);
      return {w.call_raw("llvm.abs." + mangled(a.dtype, a.lanes), type,
                         {{type, a.text}, {"i1", "false"}}),
              a.dtype, a.lanes};
    }
    case AluOp::Sign: {
      const Value positive = w.convert("zext", w.compare("icmp ne", a, zero), a.dtype);
      if (!is_signed_dtype) return positive;
      const Value sign = w.binary("ashr", a, constant(a.dtype, bits_of(a.dtype) - 1, a.lanes));
      return w.binary("or", sign, positive);
    }
    default: not_native(op, a);
  }
}

Value float_predicate(Writer& w, AluOp op, const Value& x) {
  const Value infinity = constant(Scalar::highest(x.dtype), x.lanes);
  switch (op) {
    case AluOp::Isnan: return w.compare("fcmp uno", x, x);
    case AluOp::Isinf: return w.compare("fcmp oeq", intrinsic(w, "fabs", {x}), infinity);
    case AluOp::Isfinite: return w.compare("fcmp one", intrinsic(w, "fabs", {x}), infinity);
    default: {
      const DType bits = x.dtype == DType::Float32 ? DType::Int32 : DType::Int64;
      return w.compare("icmp slt", w.convert("bitcast", x, bits), constant(bits, 0, x.lanes));
    }
  }
}

// -0.0 and 0.0 give 0.0, NaN itself.
Value float_sign(Writer& w, const Value& x) {
  const Value zero = constant(x.dtype, 0, x.lanes);
  const Value rest = w.binary("fadd", x, zero);
  const Value below =
      w.select(w.compare("fcmp olt", x, zero), constant(x.dtype, -1, x.lanes), rest);
  return w.select(w.compare("fcmp ogt", x, zero), constant(x.dtype, 1, x.lanes), below);
}

Value ldexp(Writer& w, const Value& x, const Value& exponent) {
  const Value integer = w.convert("fptosi", exponent, DType::Int32);
  // Of NaN it is poison; what a NaN is scaled by does not matter, but it has to be some number.
  const Value power =
      w.value(DType::Int32, x.lanes, "freeze ", type_text(integer), ' ', integer.text);
  const std::string name =
      concat("llvm.ldexp.", mangled(x.dtype, x.lanes), '.', mangled(power.dtype, power.lanes));
  return w.call(name, x.dtype, x.lanes, {x, power});
}

Value floating(Writer& w, AluOp op, const std::vector<Value>& args) {
  const Value& a = args[0];
  const Value& b = args.back();
  switch (op) {
    case AluOp::Add: return w.binary("fadd", a, b);
    case AluOp::Sub: return w.binary("fsub", a, b);
    case AluOp::Mul: return w.binary("fmul", a, b);
    case AluOp::Fdiv: return w.binary("fdiv", a, b);
    case AluOp::Recip: return w.binary("fdiv", constant(a.dtype, 1, a.lanes), a);
    case AluOp::Mulacc: return intrinsic(w, "fma", args);
    case AluOp::Max:
    case AluOp::Min:
    case AluOp::Fmax:
    case AluOp::Fmin: return extremum(w, op, a, b);
    case AluOp::Cmplt: return w.compare("fcmp olt", a, b);
    case AluOp::Cmple: return w.compare("fcmp ole", a, b);
    case AluOp::Cmpeq: return w.compare("fcmp oeq", a, b);
    case AluOp::Cmpne: return w.compare("fcmp une", a, b);
    case AluOp::Copysign: return intrinsic(w, "copysign", args);
    case AluOp::Ldexp: return ldexp(w, a, b);
    case AluOp::Neg: return w.value(a.dtype, a.lanes, "fneg ", type_text(a), ' ', a.text);
    case AluOp::Abs: return intrinsic(w, "fabs", args);
    case AluOp::Sqrt: return intrinsic(w, "sqrt", args);
    case AluOp::Floor: return intrinsic(w, "floor", args);
    case AluOp::Ceil: return intrinsic(w, "ceil", args);
    case AluOp::Trunc: return intrinsic(w, "trunc", args);
    case AluOp::Rint: return intrinsic(w, "rint", args);
    case AluOp::Sign: return float_sign(w, a);
    case AluOp::Isnan:
    case AluOp::Isinf:
    case AluOp::Isfinite:
    case AluOp::Signbit: return float_predicate(w, op, a);
    default:
      if (const char* name = libm_name(op)) return libm(w, name, args);
      not_native(op, a);
  }
}

}  // namespace

bool is_libm_name(const std::string& name) {
  for (const AluInfo& row : all_alu_ops())
    if (const char* libm = libm_name(row.op))
      if (name == libm || name == std::string(libm) + 'f') return true;
  return false;
}

Value emit_alu(Writer& w, AluOp op, std::vector<Value> args) {
  const DType dtype = args.back().dtype;
  if (op == AluOp::Where) return w.select(args[0], args[1], args[2]);
  if (dtype == DType::Float16 || dtype == DType::Bfloat16) {
    for (Value& arg : args) arg = emit_cast(w, arg, DType::Float32);
    const Value result = emit_alu(w, op, std::move(args));
    return is_bool(result.dtype) ? result : emit_cast(w, result, dtype);
  }
  if (is_bool(dtype)) return boolean(w, op, args);
  return is_float(dtype) ? floating(w, op, args) : integer(w, op, args);
}

}  // namespace rune::render::llvm
