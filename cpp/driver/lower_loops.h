// Lowers loops: into one kernel (loop_kernel.h); or, on a grid, into steps of the program
// (loop_steps.h).
#pragma once

#include "driver/pipeline.h"

namespace rune::driver {

// Lowers an item of the state's schedule, and adds its kernels to the state's.
//
// The loops are planned by plan_loops (loop_plan.h). Between two writes a body is a graph, which
// the pipeline compiles.
//
// As a single kernel: the globals are the item's inputs, in order, followed by its outputs, which
// begin as the plan's copies say. The kernel has several workgroups if iterations of the outermost
// loop may run side by side and take so long that cores should share them.
//
// On a grid the loops are steps (loop_steps.h), unless one thread is faster than the launches.
void lower_loops(State& state, const schedule::Loop_Nest& item);

}  // namespace rune::driver
