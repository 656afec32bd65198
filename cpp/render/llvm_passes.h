// Where the LLVM IR renderer keeps a kernel's memory, and whether LLVM's passes improve the kernel.
#pragma once

#include "lower/instr.h"

namespace rune::render::llvm {

// Whether the instruction defines memory that is on the stack, so that LLVM can keep it in
// registers.
bool is_cell(const lower::Instr& instr);

// Whether LLVM's passes should improve a kernel. They keep values in registers that its loops carry
// through memory.
bool needs_passes(const lower::Kernel& kernel);

}  // namespace rune::render::llvm
