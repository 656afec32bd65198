// Which rule decomposes which operation on which kind of dtype.
#include "lower/passes/decompose_rules.h"

#include <array>

namespace rune::lower::decomposition {

namespace {

struct RuleRow {
  AluOp op;
  Rule of_bool, of_integer, of_float32, of_float64;
};

// In the order of alu.def. An operation without a row is a basis: targets have it.
constexpr RuleRow kRows[] = {
    {AluOp::Div, nullptr, divide_truncated, nullptr, nullptr},
    {AluOp::Idiv, nullptr, divide_floored, floor_divide, floor_divide},
    {AluOp::Mod, nullptr, remainder_floored, floor_remainder, floor_remainder},
    {AluOp::Fmod, nullptr, remainder_truncated, fmod, fmod},
    {AluOp::Pow, nullptr, power_of_integers, pow, nullptr},
    {AluOp::Max, bool_or, larger_integer, maximum, maximum},
    {AluOp::Min, bool_and, smaller_integer, minimum, minimum},
    {AluOp::Fmax, nullptr, nullptr, larger_number, larger_number},
    {AluOp::Fmin, nullptr, nullptr, smaller_number, smaller_number},
    {AluOp::Cmplt, bool_less, nullptr, nullptr, nullptr},
    {AluOp::Cmple, bool_less_equal, not_greater, not_greater, not_greater},
    {AluOp::Cmpeq, bool_same, same, same, same},
    {AluOp::Cmpne, bool_different, different, different, different},
    {AluOp::Shl, nullptr, shift_left, nullptr, nullptr},
    {AluOp::Shr, nullptr, shift_right, nullptr, nullptr},
    {AluOp::Atan2, nullptr, nullptr, atan2, nullptr},
    {AluOp::Copysign, nullptr, nullptr, copy_sign, copy_sign},
    {AluOp::Hypot, nullptr, nullptr, hypot, hypot},
    {AluOp::Ldexp, nullptr, nullptr, ldexp, ldexp},
    {AluOp::Neg, nullptr, negate_integer, negate, negate},
    {AluOp::Abs, nullptr, magnitude_of_integer, absolute, absolute},
    {AluOp::Sign, nullptr, sign_of_integer, sign, sign},
    {AluOp::Not, complement, complement, nullptr, nullptr},
    {AluOp::Recip, nullptr, nullptr, reciprocal, reciprocal},
    {AluOp::Cbrt, nullptr, nullptr, cbrt, nullptr},
    {AluOp::Exp, nullptr, nullptr, exp, exp},
    {AluOp::Exp2, nullptr, nullptr, exp2, exp2},
    {AluOp::Expm1, nullptr, nullptr, expm1, expm1},
    {AluOp::Log, nullptr, nullptr, log, log},
    {AluOp::Log2, nullptr, nullptr, log2, log2},
    {AluOp::Log10, nullptr, nullptr, log10, log10},
    {AluOp::Log1p, nullptr, nullptr, log1p, log1p},
    {AluOp::Sin, nullptr, nullptr, sin, sin},
    {AluOp::Cos, nullptr, nullptr, cos, cos},
    {AluOp::Tan, nullptr, nullptr, tan, tan},
    {AluOp::Asin, nullptr, nullptr, asin, nullptr},
    {AluOp::Acos, nullptr, nullptr, acos, nullptr},
    {AluOp::Atan, nullptr, nullptr, atan, nullptr},
    {AluOp::Sinh, nullptr, nullptr, sinh, nullptr},
    {AluOp::Cosh, nullptr, nullptr, cosh, nullptr},
    {AluOp::Tanh, nullptr, nullptr, tanh, tanh},
    {AluOp::Asinh, nullptr, nullptr, asinh, nullptr},
    {AluOp::Acosh, nullptr, nullptr, acosh, nullptr},
    {AluOp::Atanh, nullptr, nullptr, atanh, nullptr},
    {AluOp::Erf, nullptr, nullptr, erf, nullptr},
    {AluOp::Floor, nullptr, nullptr, round_down, round_down},
    {AluOp::Ceil, nullptr, nullptr, round_up, round_up},
    {AluOp::Trunc, nullptr, nullptr, round_to_zero, round_to_zero},
    {AluOp::Rint, nullptr, nullptr, round_to_even, round_to_even},
    {AluOp::Isnan, nullptr, nullptr, test_nan, test_nan},
    {AluOp::Isinf, nullptr, nullptr, test_infinite, test_infinite},
    {AluOp::Isfinite, nullptr, nullptr, test_finite, test_finite},
    {AluOp::Signbit, nullptr, nullptr, test_sign, test_sign},
    {AluOp::Mulacc, nullptr, multiply_add_integers, nullptr, nullptr},
};

constexpr std::array<RuleRow, kNumAluOps> index_by_op() {
  std::array<RuleRow, kNumAluOps> table{};
  for (const RuleRow& row : kRows) table[static_cast<size_t>(row.op)] = row;
  return table;
}

}  // namespace

Rule rule_for(AluOp op, DType dtype) {
  static constexpr std::array<RuleRow, kNumAluOps> kTable = index_by_op();
  const RuleRow& row = kTable[static_cast<size_t>(op)];
  switch (kind(dtype)) {
    case Kind::Bool: return row.of_bool;
    case Kind::Int:
    case Kind::Uint: return row.of_integer;
    case Kind::Float: break;
  }
  return dtype == DType::Float32   ? row.of_float32
         : dtype == DType::Float64 ? row.of_float64
                                   : nullptr;
}

}  // namespace rune::lower::decomposition
