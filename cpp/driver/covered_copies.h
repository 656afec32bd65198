// Finds copies whose elements are all replaced before they are read.
#pragma once

#include "driver/loop_plan.h"

namespace rune::driver {

// Sets Store::is_covered of a copy of a whole cell if the statements after the copy, in the same
// body, store to every element of the target before they read it.
void find_covered_copies(LoopPlan& plan);

}  // namespace rune::driver
