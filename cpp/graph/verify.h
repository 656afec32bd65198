// Checks a graph's invariants.
#pragma once

#include <string>
#include <vector>

#include "graph/node.h"

namespace rune::graph {

// Every violation, each with the node's text: operands out of order or missing, wrong number of
// operands, metadata that differs from what `infer` gives, placeholder indices not 0..n-1, outputs
// that do not exist; in the core dialect, source nodes and complex values. Empty if the graph is
// valid.
std::vector<std::string> verify(const Graph& graph, Dialect dialect = Dialect::Source);

}  // namespace rune::graph
