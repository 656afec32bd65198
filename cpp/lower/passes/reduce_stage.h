// Lowers stages that reduce.
#pragma once

#include "lower/passes/kernel_context.h"

namespace rune::lower {

// Computes the stage's reductions at the outer points and defines their values there. Sums of
// floats are computed in blocks if the kernel's tiles say so. A stage that keeps its operand stores
// it at the same time. Where a loop's tiles carry sums, opens an If around the code that follows,
// which only the last tile runs. Returns whether it has opened one.
bool lower_reduce_stage(KernelContext& context, const schedule::Stage& stage, const Points& outer);

}  // namespace rune::lower
