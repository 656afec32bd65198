// Turns kernels into phases of one kernel that runs them tile by tile of their common axes.
#pragma once

#include "schedule/fusion/fuse.h"

namespace rune::schedule {

// Clusters that run as one kernel, at the position of the last of them.
struct TileGroup {
  std::vector<size_t> clusters;  // positions in Fusion::clusters, ascending
  Kernel kernel;                 // its phases are in the clusters' order
};

// Finds groups of clusters around contractions. Only the group may need its intermediate values,
// and a tile of a cluster may depend only on the same tile of the common axes. Such a group becomes
// one kernel if the saving pays: intermediate tiles stay in the cache, but each workgroup prepares
// the contractions' other operands. Records its decisions in the fusion's opportunities.
std::vector<TileGroup> group_by_tiles(const Graph& graph, const std::vector<Value>& outputs,
                                      const Capabilities& caps, Fusion& fusion);

}  // namespace rune::schedule
