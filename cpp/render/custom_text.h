// Inserts operands into the text of a Custom instruction.
#pragma once

#include <functional>
#include <string>

#include "lower/instr.h"

namespace rune::render {

// What the placeholders of a custom expression stand for: $0 $1 ... for the operands, $T for the
// result's type, $T0 $T1 ... for the operands' types, and $M for the type's name in LLVM's
// intrinsics.
struct CustomParts {
  std::function<std::string(size_t)> operand, operand_type;
  std::string type, mangled_type;
};

// Throws UserError(Unsupported), which names the operation, if the text uses an operand that the
// operation does not have.
std::string expand_custom(const lower::Custom& custom, size_t num_operands,
                          const CustomParts& parts);

}  // namespace rune::render
