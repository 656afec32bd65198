// Stages that fold many elements into one.
#pragma once

#include "lower/passes/kernel_context.h"

namespace rune::lower {

// Computes the stage's reductions at the outer points, and defines their values there. Floating
// sums restart in blocks where the kernel's tiles say so; a stage that keeps its operand stores it
// on the way.
void lower_reduce_stage(KernelContext& context, const schedule::Stage& stage, const Points& outer);

}  // namespace rune::lower
