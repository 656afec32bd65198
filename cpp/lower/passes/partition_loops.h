// Splits loops where masks change: a part in which all masks hold is emitted without them, between
// two parts that compute them.
#pragma once

#include "lower/instr.h"
#include "types/capabilities.h"

namespace rune::lower {

// Applies to innermost loops on devices whose threads run whole loops (cores). A mask is a
// conjunction of comparisons between integers that are linear in the variables of loops and launch.
// The range in which it holds is computed before the loop. The order of iterations and the results
// do not change.
Kernel partition_loops(const Kernel& kernel, const Capabilities& caps);

}  // namespace rune::lower
