// Estimates a kernel's arithmetic, bytes and time.
#pragma once

#include "schedule/analysis/accesses.h"

namespace rune::schedule {

// A figure of an analysis: the number without its fraction, but at most 10^18. (Loops whose bounds
// are arguments may have more operations than that.)
int64_t estimate(double figure);

// Analyses a kernel whose axes and stages are set. Before the mapping it assumes full vectors and
// busy cores. Afterwards it follows the mapping. `flops` counts the scalar operations of a run: a
// multiply-add is two, exp is one, and an element that is computed several times counts each time.
// The bytes count each distinct element that is read or written once.
ItemAnalysis analyze(const Graph& graph, const Capabilities& caps, const Kernel& kernel);

// The pass `analyze`: the costs of each item, and the critical path.
Schedule analyze_items(Schedule schedule, const Capabilities& caps);

}  // namespace rune::schedule
