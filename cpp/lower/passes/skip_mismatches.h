// Skips the work of a search in iterations without a match.
#pragma once

#include "lower/instr.h"
#include "types/capabilities.h"

namespace rune::lower {

// A search is an innermost loop that only assigns accumulators, each like this:
//
//   acc = min(acc, where(x == value, position, largest integer))
//
// `value` is known before the loop. The condition may also be `x == value or isnan(x)`, and max
// with the smallest integer may stand in place of min. An iteration in which no lane matches
// changes no accumulator. So the positions, selections and minima move into a branch. An iteration
// takes the branch only if a lane may match.
//
// Changes nothing on a grid, and no search among bools, most of whose iterations have a match.
Kernel skip_mismatches(const Kernel& kernel, const Capabilities& caps);

}  // namespace rune::lower
