// Which rule decomposes which operation on which kind of dtype: the table in alu.def.
#include "lower/passes/decompose_rules.h"

#include "base/error.h"

namespace rune::lower::decomposition {

namespace {

struct RuleRow {
  Rule of_bool, of_integer, of_float32, of_float64;
};

constexpr RuleRow kRows[] = {
#define RULES(of_bool, of_integer, of_float32, of_float64) \
  {of_bool, of_integer, of_float32, of_float64}
#define RUNE_ALU(Name, text, arity, operands, result, flags, cost, numpy, c, evaluate, rules, \
                 meaning)                                                                     \
  rules,
#include "alu/alu.def"
#undef RUNE_ALU
#undef RULES
};
static_assert(std::size(kRows) == kNumAluOps);

Rule find_rule(AluOp op, DType dtype) {
  const RuleRow& row = kRows[static_cast<size_t>(op)];
  if (is_bool(dtype)) return row.of_bool;
  if (is_integer(dtype)) return row.of_integer;
  if (dtype == DType::Float64) return row.of_float64;
  return dtype == DType::Float32 ? row.of_float32 : none;
}

}  // namespace

Value none(Operands) {
  RUNE_UNREACHABLE("an operation without a rule");
}

Rule rule_for(AluOp op, DType dtype) {
  const Rule rule = find_rule(op, dtype);
  return rule == none ? nullptr : rule;
}

}  // namespace rune::lower::decomposition
