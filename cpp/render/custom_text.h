// The text of a Custom instruction with its operands in place.
#pragma once

#include <functional>
#include <string>

#include "lower/instr.h"

namespace rune::render {

// How a language writes the parts of a custom expression: $0 $1 ... its operands, $T its type and
// $T0 $T1 ... theirs, $M the type as intrinsics of LLVM name it.
struct CustomParts {
  std::function<std::string(size_t)> operand, operand_type;
  std::string type, mangled_type;
};

// Throws UserError(Unsupported), naming the operation, for an operand that it does not have.
std::string expand_custom(const lower::Custom& custom, size_t num_operands,
                          const CustomParts& parts);

}  // namespace rune::render
