#pragma once

#include "graph/node.h"

namespace rune::graph {

// Drops the nodes that neither an output nor a Sink reaches, and renumbers the rest in order.
// Placeholders stay, since they are the program's arguments. A write whose Assign is not reached is
// dropped too: what must happen has to be an output or an operand of a Sink. Linear.
Graph eliminate_dead_code(const Graph& graph);

}  // namespace rune::graph
