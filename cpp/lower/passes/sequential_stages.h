// Stages that run in order: one loop along their axis at each outer point.
#pragma once

#include "lower/passes/kernel_context.h"

namespace rune::lower {

// An accumulator for each outer point, stored at every step.
void lower_scan_stage(KernelContext& context, const schedule::Stage& stage, const Points& outer);

// Each update into the element whose position it gives; out of range it is dropped.
void lower_scatter_stage(KernelContext& context, const schedule::Stage& stage, const Points& outer);

}  // namespace rune::lower
