// Which iterations of loops may run side by side.
#pragma once

#include "driver/loop_plan.h"

namespace rune::driver {

// Finds out whether the plan's iterations may run side by side (LoopPlan::is_parallel): the last
// statement is a loop, and of what it carries no iteration touches elements that another one stores
// to. Copies of inputs with which outputs begin leave the statements and become the plan's copies,
// if iterations run side by side or the copies are large.
void find_parallel_iterations(LoopPlan& plan);

}  // namespace rune::driver
