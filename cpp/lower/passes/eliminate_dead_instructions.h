// Removes instructions whose values are unused.
#pragma once

#include "lower/instr.h"

namespace rune::lower {

// Keeps stores, barriers, control flow, globals, accumulators that are read, and the instructions
// that these need. Removes a loop or If that has no effect any more.
Kernel eliminate_dead_instructions(const Kernel& kernel, const Capabilities& caps);

}  // namespace rune::lower
