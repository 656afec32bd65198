#pragma once

#include "graph/node.h"

namespace rune::graph {

// Makes nodes with the same payload, operands and metadata one node: the first of them. Operands of
// commutative operations count as equal in either order. Never merged: Buffer, Unique, Custom and
// Assign, a Copy that clones, a Sink, and storage that an Assign writes. Linear.
Graph eliminate_common_subexpressions(const Graph& graph);

}  // namespace rune::graph
