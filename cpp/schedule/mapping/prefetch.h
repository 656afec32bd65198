// Decides which elements kernels prefetch.
#pragma once

#include "schedule/schedule.h"
#include "types/capabilities.h"

namespace rune::schedule {

// Adds prefetches to a mapped kernel, where the device has prefetches: for buffers that the
// last-level cache does not hold, single elements of which are gathered from places that lie in
// memory; and for the rows of buffers that the second-level cache does not hold, which the first of
// several stages reads.
void plan_prefetches(const Graph& graph, const Capabilities& caps, Kernel& kernel);

}  // namespace rune::schedule
