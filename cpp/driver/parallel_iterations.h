// Finds loops whose iterations may run side by side.
#pragma once

#include "driver/loop_plan.h"

namespace rune::driver {

// Sets LoopPlan::is_parallel if the plan's iterations may run side by side: the last statement is a
// loop, and no iteration touches elements of the carried values that another iteration stores. If
// they may, or if the copies are large, copies of inputs with which outputs begin leave the
// statements and become the plan's copies.
void find_parallel_iterations(LoopPlan& plan);

}  // namespace rune::driver
