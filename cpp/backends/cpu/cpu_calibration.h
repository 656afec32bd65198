// Measures this machine's figures for the cost model.
#pragma once

#include "backends/cpu/cpu_capabilities.h"

namespace rune::runtime {

// The figures in `caps`.
CpuFigures figures_of(Capabilities caps);

// Measures for about 25 ms. A figure has two digits, and is limited to a factor of four around the
// one in `caps`, however busy the machine is.
CpuFigures measure_cpu(const Capabilities& caps);

// Replaces the figures in `caps`. Throws UserError(Value) that names a figure if it is missing, not
// positive or not finite.
void set_figures(Capabilities& caps, const CpuFigures& figures);

}  // namespace rune::runtime
