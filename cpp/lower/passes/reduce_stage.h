// Lowers stages that reduce.
#pragma once

#include "lower/passes/kernel_context.h"

namespace rune::lower {

// Computes the stage's reductions at the outer points and defines their values there. Computes sums
// of floats in blocks if the kernel's tiles say so. Also stores the operand if the stage keeps it.
// If sums are carried from tile to tile of a loop, opens an If around the code that follows, so
// that only the last tile runs it. Returns whether it has opened one.
bool lower_reduce_stage(KernelContext& context, const schedule::Stage& stage, const Points& outer);

}  // namespace rune::lower
