// The cost model: what computing, storing and loading take on a device. All results in nanoseconds.
#pragma once

#include <vector>

#include "graph/node.h"
#include "types/capabilities.h"

namespace rune::schedule {

// Arithmetic of one element of a node, in simple operations: about 20 for exp and its kind, 1 for
// other scalar operations, 0 for movement.
double node_operations(const graph::Node& node);

// By node: operations to compute one element from what `is_root` marks as stored, counting shared
// subexpressions once per use (an upper bound, saturated at kMaxTreeOperations).
inline constexpr double kMaxTreeOperations = 1e4;
std::vector<double> tree_operations(const graph::Graph& graph, const std::vector<bool>& is_root);

// Operations on elements of this dtype, all cores busy.
double operations_ns(const Capabilities& caps, double operations, DType dtype);
// Moving bytes between main memory and the cores.
double memory_ns(const Capabilities& caps, double bytes);

}  // namespace rune::schedule
