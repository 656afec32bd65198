// Which gathers announce their loads.
#pragma once

#include "schedule/schedule.h"
#include "types/capabilities.h"

namespace rune::schedule {

// Adds Prefetch hints to a mapped kernel: for buffers that the last-level cache does not hold,
// single elements of which are gathered from places that lie in memory, where the device has
// prefetches.
void plan_prefetches(const Graph& graph, const Capabilities& caps, Kernel& kernel);

}  // namespace rune::schedule
