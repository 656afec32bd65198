// The pass `fuse`: turns a graph into kernels, transfers and host calls.
#pragma once

#include "schedule/schedule.h"
#include "types/capabilities.h"

namespace rune::schedule {

// Returns a schedule whose items are in an order in which they can run, and whose kernels have
// axes, stages and buffers. In the graph, every output must have a buffer of its own.
Schedule fuse_kernels(Graph graph, const Capabilities& caps);

}  // namespace rune::schedule
