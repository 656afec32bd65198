// Loops in one kernel (loop_kernel.h); or, on a grid, as steps of the program (loop_steps.h).
#pragma once

#include "driver/pipeline.h"

namespace rune::driver {

// Lowers an item of the state's schedule, and adds its kernels to the state's.
//
// What a loop carries has one place in memory for all iterations. An Update writes to the place of
// its target, unless the target is read later; what is computed from the target before the Update,
// and read after it, is stored before. Between such writes a body is a graph, which the pipeline
// compiles.
//
// A single kernel's globals are the item's inputs, in order, and its outputs, which begin as the
// plan's copies say. It has several workgroups if iterations of the outermost loop may run side by
// side and take so long that cores should share them.
//
// On a grid the loops are steps (loop_steps.h), unless one thread is faster than as many launches.
void lower_loops(State& state, const schedule::Loop_Nest& item);

}  // namespace rune::driver
