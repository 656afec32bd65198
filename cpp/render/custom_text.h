// Inserts operands into the text of a Custom instruction.
#pragma once

#include <functional>
#include <string>

#include "lower/instr.h"

namespace rune::render {

// The parts of a custom expression in a language: operands for $0 $1 ..., the type for $T,
// operands' types for $T0 $T1 ..., and for $M the type as LLVM's intrinsics name it.
struct CustomParts {
  std::function<std::string(size_t)> operand, operand_type;
  std::string type, mangled_type;
};

// Throws UserError(Unsupported) that names the operation if the text uses an operand that it lacks.
std::string expand_custom(const lower::Custom& custom, size_t num_operands,
                          const CustomParts& parts);

}  // namespace rune::render
