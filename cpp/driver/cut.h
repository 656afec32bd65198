// From a traced graph to programs of blocks of its arrays.
#pragma once

#include <string>
#include <vector>

#include "graph/node.h"
#include "partition/partition.h"

namespace rune::driver {

// Cuts a graph for the device, whose arguments are in these chunks (by index): the graph passes
// that make core nodes and leave out what need not be computed, with all loops expanded, then
// partition::partition. Complex arguments, outputs, and what is handed to the host are arrays of
// real numbers with a last axis of the two parts, in one chunk. Throws what these throw.
partition::Plan cut(const graph::Graph& graph, const std::string& device,
                    const std::vector<partition::Chunks>& chunks);

}  // namespace rune::driver
