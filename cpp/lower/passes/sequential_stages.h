// Lowers stages that compute their elements in order, by a loop along their axis at each outer
// point.
#pragma once

#include "lower/passes/kernel_context.h"

namespace rune::lower {

// Keeps an accumulator for each outer point and stores it at every step.
void lower_scan_stage(KernelContext& context, const schedule::Stage& stage, const Points& outer);

// Applies each update to the element at its position. An update out of range is dropped.
void lower_scatter_stage(KernelContext& context, const schedule::Stage& stage, const Points& outer);

}  // namespace rune::lower
