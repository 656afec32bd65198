// Checks a graph's invariants.
#pragma once

#include <string>
#include <vector>

#include "graph/node.h"

namespace rune::graph {

// Returns every violation, each with the node's text; empty if the graph is valid:
// - operands that are missing or out of order, or a wrong number of operands,
// - metadata that differs from the result of `infer`,
// - placeholder indices that are not 0..n-1, and outputs that do not exist,
// - in the core dialect, source nodes and complex values.
std::vector<std::string> verify(const Graph& graph, Dialect dialect = Dialect::Source);

}  // namespace rune::graph
