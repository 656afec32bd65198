// Kernels that become phases of one kernel, tile by tile of axes that they have in common.
#pragma once

#include "schedule/fusion/fuse.h"

namespace rune::schedule {

// Clusters, by their positions in the fusion, that run as one kernel in place of the last of them.
struct TileGroup {
  std::vector<size_t> clusters;  // ascending
  Kernel kernel;                 // its phases are in the clusters' order
};

// Finds clusters around contractions whose values in between are needed by nothing else and, for a
// tile of common axes, by the same tile only; groups them where keeping such tiles in cache saves
// more than it costs to prepare the contractions' other operands once for each workgroup. Enters
// what it decides into the fusion's opportunities.
std::vector<TileGroup> group_by_tiles(const Graph& graph, const std::vector<Value>& outputs,
                                      const Capabilities& caps, Fusion& fusion);

}  // namespace rune::schedule
