// Maps kernels with phases.
#pragma once

#include "schedule/analysis/accesses.h"

namespace rune::schedule {

// The values that a kernel's phases store only for each other, in ascending order.
std::vector<Value> values_between_phases(const Kernel& kernel);

// Maps a kernel with phases, and its phases, to cores, as map_axes does for other kernels. A
// workgroup processes points of all shared axes but the last, and tiles of the last axis. The tiles
// are so small that the values between phases stay in the second-level cache. Returns false if even
// the smallest tile is too large, or if a phase cannot run over such tiles; the kernel is then
// undefined.
bool map_phases(const Graph& graph, const Capabilities& caps, Kernel& kernel);

}  // namespace rune::schedule
