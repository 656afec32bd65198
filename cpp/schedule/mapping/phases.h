// Kernels of several phases: the mapping of what they share.
#pragma once

#include "schedule/analysis/accesses.h"

namespace rune::schedule {

// What a kernel's phases store for each other alone, in ascending order.
std::vector<Value> values_between_phases(const Kernel& kernel);

// Chooses everything that map_axes does, for a kernel with phases and for these, on a machine of
// cores: a workgroup takes points of all shared axes but the last, and of that tiles for which the
// values between phases stay in the second-level cache. Returns false, leaving the kernel as it
// may be, if not even the smallest tile does, or if a phase cannot run over such tiles.
bool map_phases(const Graph& graph, const Capabilities& caps, Kernel& kernel);

}  // namespace rune::schedule
