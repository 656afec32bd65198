// Splits loops where masks change, so that most iterations compute no masks.
#pragma once

#include "lower/instr.h"
#include "types/capabilities.h"

namespace rune::lower {

// Applies on devices whose threads run whole loops (cores). A mask is a conjunction of comparisons
// between integers that are linear in the variables of loops and launch. Two kinds of loops are
// split; where they are is computed before the loop, and the order of iterations and the results do
// not change.
//  - A loop with comparisons that exclude each other, such as those of a concatenation, becomes a
//    loop for each range in which they are known, and one for the iterations between two ranges.
//    It may have loops inside.
//  - In an innermost loop all other comparisons hold in one range. It becomes a loop without their
//    masks, between two loops that compute them.
Kernel partition_loops(const Kernel& kernel, const Capabilities& caps);

}  // namespace rune::lower
