// Expressions of the C-like renderer: literals, scalar operations, conversions.
#include <cmath>

#include "base/error.h"
#include "base/hash.h"
#include "render/c_like.h"

namespace rune::render::c_like {

namespace {

struct Row {
  AluOp op;
  const char* kinds;  // letters: b bool, s signed, u unsigned, f float
  const char* text;
};

// Spellings that replace those of alu.def, which has one for all dtypes. These let integers wrap
// without undefined behaviour, handle NaN, and differ by dtype. Narrow integers are computed in int
// and narrowed by the assignment.
constexpr Row kRows[] = {
    {AluOp::Add, "s", "($T)(($U)$0 + ($U)$1)"},
    {AluOp::Sub, "s", "($T)(($U)$0 - ($U)$1)"},
    {AluOp::Mul, "su", "($T)(($U)$0 * ($U)$1)"},
    {AluOp::Neg, "su", "($T)(0 - ($U)$0)"},
    {AluOp::Mulacc, "su", "($T)(($U)$0 * ($U)$1 + ($U)$2)"},
    {AluOp::Fmod, "su", "($0 % $1)"},
    {AluOp::Shl, "su", "($T)(($U)$0 << $1)"},
    {AluOp::Shr, "su", "($0 >> $1)"},
    {AluOp::Max, "su", "($0 > $1 ? $0 : $1)"},
    {AluOp::Max, "b", "($0 || $1)"},
    {AluOp::Max, "f", "rune_max($0, $1)"},
    {AluOp::Min, "su", "($0 < $1 ? $0 : $1)"},
    {AluOp::Min, "b", "($0 && $1)"},
    {AluOp::Min, "f", "rune_min($0, $1)"},
    {AluOp::Fmax, "f", "rune_fmax($0, $1)"},
    {AluOp::Fmin, "f", "rune_fmin($0, $1)"},
    {AluOp::Not, "b", "(!$0)"},
    {AluOp::Or, "b", "($0 || $1)"},
    {AluOp::And, "b", "($0 && $1)"},
    {AluOp::Xor, "b", "($0 != $1)"},
    {AluOp::Cmplt, "b", "(!$0 && $1)"},
    {AluOp::Cmple, "b", "(!$0 || $1)"},
    {AluOp::Abs, "s", "($0 < 0 ? ($T)(0 - ($U)$0) : $0)"},
    {AluOp::Abs, "u", "$0"},
    {AluOp::Sign, "s", "($T)(($0 > 0) - ($0 < 0))"},
    {AluOp::Sign, "u", "($T)($0 > 0)"},
    {AluOp::Sign, "f", "($0 != $0 ? $0 : ($T)(($0 > 0) - ($0 < 0)))"},
};

// Spellings for operations whose exact result fits: they need no unsigned types.
constexpr Row kExactRows[] = {
    {AluOp::Add, "su", "($0 + $1)"}, {AluOp::Sub, "su", "($0 - $1)"},
    {AluOp::Mul, "su", "($0 * $1)"}, {AluOp::Mulacc, "su", "($0 * $1 + $2)"},
    {AluOp::Neg, "s", "(-$0)"},
};

const char* find(std::span<const Row> rows, AluOp op, DType dtype) {
  for (const Row& row : rows)
    if (row.op == op && is_of_kinds(dtype, row.kinds)) return row.text;
  return nullptr;
}

std::string_view spelling(const Dialect& dialect, AluOp op, DType dtype, bool fits) {
  // If the result fits, int arithmetic on narrow types is narrowed by the assignment alone.
  if (fits)
    if (const char* text = find(kExactRows, op, dtype)) return text;
  const auto own = dialect.spellings.find({op, dtype});
  if (own != dialect.spellings.end()) return own->second;
  if (const char* text = find(kRows, op, dtype)) return text;
  const std::string_view text = info(op).c;
  return text.starts_with('(') || dialect.functions[static_cast<size_t>(op)] ? text : "";
}

bool is_narrow_float(DType dtype) {
  return is_float(dtype) && size_of(dtype) == 2;
}

std::string digits(uint64_t bits) {
  std::string text = hex(bits);
  const size_t first = text.find_first_not_of('0');
  return first == std::string::npos ? "0" : text.substr(first);
}

bool is_normal(const Scalar& value) {
  const double magnitude = std::fabs(value.as_double());
  if (magnitude == 0) return !std::signbit(value.as_double());
  if (!std::isfinite(magnitude)) return false;
  switch (value.dtype()) {
    case DType::Float16: return magnitude >= 0x1p-14;
    case DType::Float64: return magnitude >= 0x1p-1022;
    default: return magnitude >= 0x1p-126;
  }
}

std::string float_literal(const Dialect& dialect, const Scalar& value) {
  const int d = static_cast<int>(value.dtype());
  const bool decimal = is_normal(value) && !dialect.float_literal[d].empty();
  if (!decimal) return expand(dialect.float_bits[d], {{'x', digits(value.bits())}});
  std::string number = value.text();
  if (number.find_first_of(".e") == std::string::npos) number += ".0";
  const std::string text = expand(dialect.float_literal[d], {{'x', number}});
  return std::signbit(value.as_double()) ? '(' + text + ')' : text;
}

// A float32 or float64 as an integer: NumPy's conversion, wrapped to the width.
std::string float_to_integer(const Dialect& dialect, const std::string& operand, DType to) {
  const std::string cast_to = '(' + dialect.type(to) + ')';
  if (to == DType::Uint64) return "rune_to_ulong(" + operand + ')';
  if (to == DType::Int64) return "rune_to_long(" + operand + ')';
  if (to == DType::Uint32) return cast_to + "rune_to_long(" + operand + ')';
  return (to == DType::Int32 ? "" : cast_to) + "rune_to_int(" + operand + ')';
}

}  // namespace

std::string expand(std::string_view pattern,
                   std::initializer_list<std::pair<char, std::string_view>> words) {
  std::string out;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '$' || i + 1 == pattern.size()) {
      out += pattern[i];
      continue;
    }
    const char key = pattern[++i];
    bool found = false;
    for (const auto& [name, text] : words) {
      if (name != key) continue;
      out += text;
      found = true;
      break;
    }
    RUNE_CHECK(found, "pattern `", pattern, "` has no $", key, " here");
  }
  return out;
}

std::string literal(const Dialect& dialect, const Scalar& value) {
  const DType dtype = value.dtype();
  if (is_bool(dtype)) return value.as_bool() ? "true" : "false";
  if (is_float(dtype)) return float_literal(dialect, value);
  const std::string& suffix = dialect.integer_suffix[static_cast<int>(dtype)];
  // The digits of INT_MIN, without the sign, do not fit its type, so they are no literal of it.
  const bool lowest =
      kind(dtype) == Kind::Int && size_of(dtype) >= 4 && value == Scalar::lowest(dtype);
  if (lowest) {
    const DType bits = size_of(dtype) == 8 ? DType::Uint64 : DType::Uint32;
    return "((" + dialect.type(dtype) + ")0x" + digits(value.bits()) +
           dialect.integer_suffix[static_cast<int>(bits)] + ')';
  }
  const std::string text = value.text() + suffix;
  return text[0] == '-' ? '(' + text + ')' : text;
}

std::string alu(const Dialect& dialect, AluOp op, DType dtype,
                std::span<const std::string> operands, bool fits) {
  RUNE_CHECK(op == AluOp::Where || !dialect.storage_only[static_cast<int>(dtype)], name_of(op),
             " on ", name_of(dtype), " was not widened for ", dialect.name);
  const std::string_view pattern = spelling(dialect, op, dtype, fits);
  RUNE_CHECK(!pattern.empty(), name_of(op), " on ", name_of(dtype), " was not decomposed for ",
             dialect.name);
  const auto operand = [&](size_t i) -> std::string_view {
    return i < operands.size() ? std::string_view(operands[i]) : std::string_view();
  };
  return expand(pattern, {{'0', operand(0)},
                          {'1', operand(1)},
                          {'2', operand(2)},
                          {'T', dialect.type(dtype)},
                          {'U', dialect.wrap_type(dtype)}});
}

std::string cast(const Dialect& dialect, const std::string& operand, DType from, DType to) {
  if (from == to) return operand;
  const auto own = dialect.casts.find({from, to});
  if (own != dialect.casts.end()) return expand(own->second, {{'0', operand}});
  // Converts by way of float32. It holds every narrow float, and the integers that it rounds are
  // beyond float16's range.
  if (is_narrow_float(from) && to != DType::Float32)
    return cast(dialect, cast(dialect, operand, from, DType::Float32), DType::Float32, to);
  if (is_narrow_float(to) && from != DType::Float32)
    return cast(dialect, cast(dialect, operand, from, DType::Float32), DType::Float32, to);
  if (is_bool(to)) return '(' + operand + " != " + literal(dialect, Scalar::zero(from)) + ')';
  if (is_float(from) && !is_float(to)) return float_to_integer(dialect, operand, to);
  return "((" + dialect.type(to) + ')' + operand + ')';
}

std::string bitcast(const Dialect& dialect, const std::string& operand, DType from, DType to) {
  if (from == to) return operand;
  if (!is_float(from) && !is_float(to)) return cast(dialect, operand, from, to);
  return expand(dialect.bitcast, {{'0', operand}, {'T', dialect.type(to)}});
}

}  // namespace rune::render::c_like
