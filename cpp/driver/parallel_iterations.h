// Which iterations of loops may run side by side.
#pragma once

#include "driver/loop_plan.h"

namespace rune::driver {

// Finds out whether the plan's iterations may run side by side (LoopPlan::is_parallel): the last
// statement is a loop, and of what it carries no iteration touches elements that another one stores
// to. If so, copies of inputs to outputs leave the statements and become the plan's copies.
void find_parallel_iterations(LoopPlan& plan);

}  // namespace rune::driver
