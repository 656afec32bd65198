// Removes instructions whose values nothing uses.
#pragma once

#include "lower/instr.h"

namespace rune::lower {

// Keeps stores, barriers, control flow, globals, accumulators that are read and what those need; a
// loop or If left without effect goes too.
Kernel eliminate_dead_instructions(const Kernel& kernel, const Capabilities& caps);

}  // namespace rune::lower
