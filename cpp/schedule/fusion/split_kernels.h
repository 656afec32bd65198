// Ends kernels that would be too long to compile.
#pragma once

#include <vector>

#include "graph/node.h"

namespace rune::schedule {

// Nodes of a kernel beyond which it is rather split: compilers take more than linear time.
inline constexpr int64_t kMostNodes = 2048;

// Adds roots (by node: values that a kernel computes as such) so that no root computes many more
// than kMostNodes nodes that it alone needs. Near-linear in the size of the graph.
void split_long_kernels(const graph::Graph& graph, std::vector<bool>& is_root);

}  // namespace rune::schedule
