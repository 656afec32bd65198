// Splits loops where masks change, so that most iterations compute no masks.
#pragma once

#include "lower/instr.h"
#include "types/capabilities.h"

namespace rune::lower {

// Applies to devices whose threads run whole loops (cores). A mask is a conjunction of comparisons
// between integers that are linear in the variables of loops and launch. Two kinds of loops are
// split. The places of the splits are computed before the loop. The order of iterations and the
// results do not change.
//  - A loop, perhaps with inner loops, that has comparisons which exclude each other, such as those
//    of a concatenation. It becomes a loop for each range in which the comparisons are known, and a
//    loop for the iterations between two ranges.
//  - An innermost loop with other comparisons, which hold in one range. It becomes a loop over this
//    range without their masks, between two loops that compute the masks.
Kernel partition_loops(const Kernel& kernel, const Capabilities& caps);

}  // namespace rune::lower
