// Splits kernels that would take too long to compile.
#pragma once

#include <vector>

#include "graph/node.h"

namespace rune::schedule {

// A kernel with more nodes is split, because compilers take more than linear time.
inline constexpr int64_t kMostNodes = 2048;

// Adds roots (values that a kernel computes), so that no root computes many more than kMostNodes
// nodes that it alone needs. `is_root` is by node. Near-linear.
void split_long_kernels(const graph::Graph& graph, std::vector<bool>& is_root);

}  // namespace rune::schedule
