// Splits loops where masks change: a stretch in which masks that are linear in the loop's variable
// hold, without them, between two in which they are computed.
#pragma once

#include "lower/instr.h"
#include "types/capabilities.h"

namespace rune::lower {

// Applies to innermost loops, on devices whose threads run whole loops (cores). A mask is a
// conjunction of comparisons between integers that are linear in the variables of loops and launch;
// where one holds is computed before the loop. Order of iterations and results are those of the
// loop as it was.
Kernel partition_loops(const Kernel& kernel, const Capabilities& caps);

}  // namespace rune::lower
