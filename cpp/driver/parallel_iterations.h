// Which iterations of loops may run side by side.
#pragma once

#include "driver/loop_plan.h"

namespace rune::driver {

// Finds out whether the plan's iterations may run side by side (LoopPlan::is_parallel): the last
// statement is a loop each of whose iterations touches, of what it carries, a slice of its own. If
// so, copies of inputs to outputs leave the statements and become the plan's copies.
void find_parallel_iterations(LoopPlan& plan);

}  // namespace rune::driver
