// Which rule decomposes which operation on which kind of dtype: the table in alu.def.
#include "lower/passes/decompose_rules.h"

#include "base/error.h"

namespace rune::lower::decomposition {

Value none(Operands) {
  RUNE_UNREACHABLE("an operation without a rule");
}

Rule rule_for(AluOp op, DType dtype) {
  static constexpr Rule kRules[][3] = {
#define RULES(of_integer, of_float32, of_float64) {of_integer, of_float32, of_float64}
#define RUNE_ALU(Name, text, arity, operands, result, flags, cost, numpy, c, evaluate, rules, \
                 meaning)                                                                     \
  rules,
#include "alu/alu.def"
#undef RUNE_ALU
#undef RULES
  };
  const auto& [of_integer, of_float32, of_float64] = kRules[static_cast<size_t>(op)];
  const Rule rule = is_integer(dtype)         ? of_integer
                    : dtype == DType::Float32 ? of_float32
                    : dtype == DType::Float64 ? of_float64
                                              : none;
  return rule == none ? nullptr : rule;
}

}  // namespace rune::lower::decomposition
