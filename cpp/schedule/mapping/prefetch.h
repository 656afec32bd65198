// Decides which elements kernels prefetch.
#pragma once

#include "schedule/schedule.h"
#include "types/capabilities.h"

namespace rune::schedule {

// Adds prefetches to a mapped kernel, if the device has them:
// - of buffers that do not fit the last-level cache, if single elements are gathered from positions
//   that lie in memory;
// - of the rows of buffers that do not fit the second-level cache, if the first of several stages
//   reads them;
// - of outputs that would take more than half of the second-level cache, if they are stored as
//   squares that are transposed in registers.
void plan_prefetches(const Graph& graph, const Capabilities& caps, Kernel& kernel);

}  // namespace rune::schedule
