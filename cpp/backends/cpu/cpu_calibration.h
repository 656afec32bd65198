// Measures this machine's figures for the cost model.
#pragma once

#include "backends/cpu/cpu_capabilities.h"

namespace rune::runtime {

// Returns the figures in `caps`, by name.
CpuFigures figures_of(Capabilities caps);

// Measures the figures, which takes about 25 ms. Each is rounded to two digits. On a busy machine a
// figure may be wrong: none differs from the one in `caps` by more than a factor of four.
CpuFigures measure_cpu(const Capabilities& caps);

// Replaces the figures in `caps`. Throws UserError(Value) that names a figure if it is missing, not
// positive or not finite.
void set_figures(Capabilities& caps, const CpuFigures& figures);

}  // namespace rune::runtime
