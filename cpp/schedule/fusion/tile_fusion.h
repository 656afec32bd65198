// Turns kernels into phases of one kernel that runs them tile by tile of their common axes.
#pragma once

#include "schedule/fusion/fuse.h"

namespace rune::schedule {

// Clusters, by their positions in the fusion, that run as one kernel at the position of the last
// one.
struct TileGroup {
  std::vector<size_t> clusters;  // ascending
  Kernel kernel;                 // its phases are in the clusters' order
};

// Finds clusters around contractions whose intermediate values only the group needs, and of which a
// tile depends only on the same tile of common axes. Groups them if keeping such tiles in the cache
// saves more than preparing the contractions' other operands once for each workgroup costs. Records
// its decisions in the fusion's opportunities.
std::vector<TileGroup> group_by_tiles(const Graph& graph, const std::vector<Value>& outputs,
                                      const Capabilities& caps, Fusion& fusion);

}  // namespace rune::schedule
