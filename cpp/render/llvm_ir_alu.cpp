// Scalar operations for the LLVM IR renderer.
#include <bit>
#include <optional>

#include "alu/alu.h"
#include "render/llvm_ir_writer.h"

namespace rune::render::llvm {

namespace {

// The name of the C library's function of doubles that computes an operation, or an empty string.
// The name of its version for floats ends with an `f`.
std::string libm_name(AluOp op) {
  const std::string_view spelling = info(op).c;
  return std::string(spelling.substr(0, spelling.find('(')));
}

// Calls a function of the C library once for each lane.
Value libm(Writer& w, const std::string& name, const std::vector<Value>& args) {
  const Value& first = args[0];
  const std::string function = first.dtype == DType::Float32 ? name + 'f' : name;
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

// `a op b ? a : b` is one instruction on x86. Like NumPy, it gives b for two zeros. (llvm.maximum
// would order zeros by sign, at twice the cost.) It also gives b if an operand is NaN, so one
// operand must be checked: maximum returns a if a is NaN, and fmax returns a if b is NaN. A
// constant that is not NaN needs no check. If b is a constant, maximum swaps the operands so that a
// NaN in a is the result; if b is a zero, a zero of any sign in a still gives b.
template <AluOp kOp>
Value extremum(Writer& w, const char*, const std::vector<Value>& x) {
  const Value &a = x[0], &b = x[1];
  const bool is_max = kOp == AluOp::Max || kOp == AluOp::Fmax;
  const char* before = is_max ? "fcmp ogt" : "fcmp olt";
  const bool propagates = kOp == AluOp::Max || kOp == AluOp::Min;
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

// Computes the remainder of vectors from their quotient, unless the divisor is constant.
Value remainder(Writer& w, const char*, const std::vector<Value>& x) {
  const Value &a = x[0], &b = x[1];
  const bool sign = is_signed(a.dtype);
  if (a.lanes == 1 || b.text[0] != '%') return w.binary(sign ? "srem" : "urem", a, b);
  return w.binary("sub", a, w.binary("mul", w.binary(sign ? "sdiv" : "udiv", a, b), b));
}

Value integer_magnitude(Writer& w, const char*, const std::vector<Value>& x) {
  const std::string type = type_text(x[0]);
  return {w.call_raw("llvm.abs." + mangled(x[0].dtype, x[0].lanes), type,
                     {{type, x[0].text}, {"i1", "false"}}),
          x[0].dtype, x[0].lanes};
}

Value integer_sign(Writer& w, const char*, const std::vector<Value>& x) {
  const Value& a = x[0];
  const Value zero = constant(a.dtype, 0, a.lanes);
  const Value positive = w.convert("zext", w.compare("icmp ne", a, zero), a.dtype);
  if (!is_signed(a.dtype)) return positive;
  const Value sign = w.binary("ashr", a, constant(a.dtype, bits_of(a.dtype) - 1, a.lanes));
  return w.binary("or", sign, positive);
}

Value float_sign_bit(Writer& w, const char*, const std::vector<Value>& x) {
  const DType bits = x[0].dtype == DType::Float32 ? DType::Int32 : DType::Int64;
  return w.compare("icmp slt", w.convert("bitcast", x[0], bits), constant(bits, 0, x[0].lanes));
}

// The sign of a float. -0.0 and 0.0 give 0.0, NaN gives itself.
Value float_sign(Writer& w, const char*, const std::vector<Value>& args) {
  const Value& x = args[0];
  const Value zero = constant(x.dtype, 0, x.lanes);
  const Value rest = w.binary("fadd", x, zero);
  const Value below =
      w.select(w.compare("fcmp olt", x, zero), constant(x.dtype, -1, x.lanes), rest);
  return w.select(w.compare("fcmp ogt", x, zero), constant(x.dtype, 1, x.lanes), below);
}

Value ldexp(Writer& w, const char*, const std::vector<Value>& args) {
  const auto [x, exponent] = std::pair(args[0], args[1]);
  const Value integer = w.convert("fptosi", exponent, DType::Int32);
  // The conversion of NaN is poison. freeze makes it some number; it does not matter which.
  const Value power =
      w.value(DType::Int32, x.lanes, "freeze ", type_text(integer), ' ', integer.text);
  const std::string name =
      concat("llvm.ldexp.", mangled(x.dtype, x.lanes), '.', mangled(power.dtype, power.lanes));
  return w.call(name, x.dtype, x.lanes, {x, power});
}

// How operations are emitted: each has a function, and a word that is passed to it.
using Operands = const std::vector<Value>&;
struct Row {
  AluOp op;
  const char* kinds;  // letters: b bool, s signed, u unsigned, f float
  Value (*emit)(Writer& w, const char* word, Operands x);
  const char* word = "";
};

Value binary(Writer& w, const char* word, Operands x) {
  return w.binary(word, x[0], x[1]);
}
Value compare(Writer& w, const char* word, Operands x) {
  return w.compare(word, x[0], x[1]);
}
// Compares |x| with infinity.
Value compare_size(Writer& w, const char* word, Operands x) {
  const Value infinity = constant(Scalar::highest(x[0].dtype), x[0].lanes);
  return w.compare(word, intrinsic(w, "fabs", x), infinity);
}
Value same(Writer&, const char*, Operands x) {
  return x[0];
}

constexpr Row kRows[] = {
    {AluOp::Add, "su", binary, "add"},
    {AluOp::Add, "f", binary, "fadd"},
    {AluOp::Sub, "su", binary, "sub"},
    {AluOp::Sub, "f", binary, "fsub"},
    {AluOp::Mul, "su", binary, "mul"},
    {AluOp::Mul, "f", binary, "fmul"},
    {AluOp::Mulacc, "su",
     [](Writer& w, const char*, Operands x) {
       return w.binary("add", w.binary("mul", x[0], x[1]), x[2]);
     }},
    {AluOp::Mulacc, "f", intrinsic, "fma"},
    {AluOp::Fdiv, "f", binary, "fdiv"},
    {AluOp::Recip, "f",
     [](Writer& w, const char*, Operands x) {
       return w.binary("fdiv", constant(x[0].dtype, 1, x[0].lanes), x[0]);
     }},
    {AluOp::Div, "s", binary, "sdiv"},
    {AluOp::Div, "u", binary, "udiv"},
    {AluOp::Fmod, "su", remainder},
    {AluOp::Max, "b", binary, "or"},
    {AluOp::Max, "s", intrinsic, "smax"},
    {AluOp::Max, "u", intrinsic, "umax"},
    {AluOp::Max, "f", extremum<AluOp::Max>},
    {AluOp::Min, "b", binary, "and"},
    {AluOp::Min, "s", intrinsic, "smin"},
    {AluOp::Min, "u", intrinsic, "umin"},
    {AluOp::Min, "f", extremum<AluOp::Min>},
    {AluOp::Fmax, "f", extremum<AluOp::Fmax>},
    {AluOp::Fmin, "f", extremum<AluOp::Fmin>},
    {AluOp::Cmplt, "b",
     [](Writer& w, const char*, Operands x) { return w.binary("and", bool_not(w, x[0]), x[1]); }},
    {AluOp::Cmplt, "s", compare, "icmp slt"},
    {AluOp::Cmplt, "u", compare, "icmp ult"},
    {AluOp::Cmplt, "f", compare, "fcmp olt"},
    {AluOp::Cmple, "b",
     [](Writer& w, const char*, Operands x) { return w.binary("or", bool_not(w, x[0]), x[1]); }},
    {AluOp::Cmple, "s", compare, "icmp sle"},
    {AluOp::Cmple, "u", compare, "icmp ule"},
    {AluOp::Cmple, "f", compare, "fcmp ole"},
    {AluOp::Cmpeq, "b",
     [](Writer& w, const char*, Operands x) { return bool_not(w, w.binary("xor", x[0], x[1])); }},
    {AluOp::Cmpeq, "su", compare, "icmp eq"},
    {AluOp::Cmpeq, "f", compare, "fcmp oeq"},
    {AluOp::Cmpne, "b", binary, "xor"},
    {AluOp::Cmpne, "su", compare, "icmp ne"},
    {AluOp::Cmpne, "f", compare, "fcmp une"},
    {AluOp::Xor, "bsu", binary, "xor"},
    {AluOp::Or, "bsu", binary, "or"},
    {AluOp::And, "bsu", binary, "and"},
    {AluOp::Shl, "su", binary, "shl"},
    {AluOp::Shr, "s", binary, "ashr"},
    {AluOp::Shr, "u", binary, "lshr"},
    {AluOp::Neg, "su",
     [](Writer& w, const char*, Operands x) {
       return w.binary("sub", constant(x[0].dtype, 0, x[0].lanes), x[0]);
     }},
    {AluOp::Neg, "f",
     [](Writer& w, const char*, Operands x) {
       return w.value(x[0].dtype, x[0].lanes, "fneg ", type_text(x[0]), ' ', x[0].text);
     }},
    {AluOp::Not, "b", [](Writer& w, const char*, Operands x) { return bool_not(w, x[0]); }},
    {AluOp::Not, "su",
     [](Writer& w, const char*, Operands x) {
       return w.binary("xor", x[0], constant(x[0].dtype, -1, x[0].lanes));
     }},
    {AluOp::Abs, "s", integer_magnitude},
    {AluOp::Abs, "u", same},
    {AluOp::Abs, "f", intrinsic, "fabs"},
    {AluOp::Sign, "su", integer_sign},
    {AluOp::Sign, "f", float_sign},
    {AluOp::Copysign, "f", intrinsic, "copysign"},
    {AluOp::Ldexp, "f", ldexp},
    {AluOp::Sqrt, "f", intrinsic, "sqrt"},
    {AluOp::Floor, "f", intrinsic, "floor"},
    {AluOp::Ceil, "f", intrinsic, "ceil"},
    {AluOp::Trunc, "f", intrinsic, "trunc"},
    {AluOp::Rint, "f", intrinsic, "rint"},
    {AluOp::Isnan, "f",
     [](Writer& w, const char*, Operands x) { return w.compare("fcmp uno", x[0], x[0]); }},
    {AluOp::Isinf, "f", compare_size, "fcmp oeq"},
    {AluOp::Isfinite, "f", compare_size, "fcmp one"},
    {AluOp::Signbit, "f", float_sign_bit},
};

}  // namespace

Value emit_alu(Writer& w, AluOp op, std::vector<Value> args) {
  const DType dtype = args.back().dtype;
  if (op == AluOp::Where) return w.select(args[0], args[1], args[2]);
  if (dtype == DType::Float16 || dtype == DType::Bfloat16) {
    for (Value& arg : args) arg = emit_cast(w, arg, DType::Float32);
    const Value result = emit_alu(w, op, std::move(args));
    return is_bool(result.dtype) ? result : emit_cast(w, result, dtype);
  }
  for (const Row& row : kRows)
    if (row.op == op && is_of_kinds(dtype, row.kinds)) return row.emit(w, row.word, args);
  const std::string name = libm_name(op);
  RUNE_CHECK(is_float(dtype) && !name.empty(), "llvm_ir: cannot render ", name_of(op), " of ",
             name_of(dtype), " (decompose rewrites it)");
  return libm(w, name, args);
}

}  // namespace rune::render::llvm
