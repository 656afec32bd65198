// The decomposition rules that the rows of alu.def name. Each takes the operands and returns the
// result; they stand in decompose_*.cpp.
#pragma once

#include "lower/passes/decompose_emitter.h"

namespace rune::lower::decomposition {

using Operands = std::span<const Value>;

#define RULES(of_integer, of_float32, of_float64) \
  Value of_integer(Operands);                     \
  Value of_float32(Operands);                     \
  Value of_float64(Operands);
#define RUNE_ALU(Name, text, arity, operands, result, flags, cost, numpy, c, evaluate, rules, ...) \
  rules
#include "alu/alu.def"
#undef RUNE_ALU
#undef RULES

}  // namespace rune::lower::decomposition
