// Measures this machine's figures for the cost model.
#pragma once

#include "backends/cpu/cpu_capabilities.h"

namespace rune::runtime {

// Returns the figures in `caps`, by name.
CpuFigures figures_of(Capabilities caps);

// Measures the figures, which takes about 30 ms. Each is rounded to two digits. A busy machine may
// distort a figure, so none may differ from the one in `caps` by more than a factor of four.
CpuFigures measure_cpu(const Capabilities& caps);

// Replaces the figures in `caps`, and the costs of divisions and square roots of floats, which
// follow from them. If a figure is missing, not positive or not finite, throws UserError(Value),
// which names it.
void set_figures(Capabilities& caps, const CpuFigures& figures);

}  // namespace rune::runtime
