// Cuts a traced graph into programs of blocks of its arrays.
#pragma once

#include <string>
#include <vector>

#include "graph/node.h"
#include "partition/partition.h"

namespace rune::driver {

// Cuts a graph for the device. `chunks` has the chunks of each argument, by index. It runs the
// graph passes up to eliminate_dead_code, with all loops expanded, and then partition::partition.
// Complex arguments and outputs, and complex arrays that the host gets, are arrays of real numbers
// with a last axis of the two parts, in one chunk. Throws what the passes and partition() throw.
partition::Plan cut(const graph::Graph& graph, const std::string& device,
                    const std::vector<partition::Chunks>& chunks);

}  // namespace rune::driver
