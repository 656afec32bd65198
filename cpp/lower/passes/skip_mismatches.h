// Makes loops that search for a value pass over what does not match.
#pragma once

#include "lower/instr.h"
#include "types/capabilities.h"

namespace rune::lower {

// A loop searches if it does nothing but take the least or the greatest integer of those for which
// a condition holds, and the condition compares vectors with a value that is known before the loop:
//
//   acc = min(acc, where(x == value, position, largest integer))
//
// If the condition holds in no lane of an iteration, the iteration changes no accumulator. So the
// positions, the selections and the minima move into a branch that is taken if it holds in one.
//
// Changes nothing on a grid.
Kernel skip_mismatches(const Kernel& kernel, const Capabilities& caps);

}  // namespace rune::lower
