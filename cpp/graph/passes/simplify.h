#pragma once

#include "graph/node.h"

namespace rune::graph {

// Applies algebraic rules until none applies, then drops nodes that nothing uses. Every rule is
// exact: equal bits for NaN, infinities, -0.0 and integers that wrap (of NaN, only that it is one);
// sums and products may be reordered across reductions only. The rules are listed in simplify.cpp
// by the kind of their root. Near-linear: each sweep is, and a graph takes a few.
Graph simplify(const Graph& graph);

}  // namespace rune::graph
