// Concatenations of many operands.
#pragma once

#include <vector>

#include "graph/node.h"

namespace rune::schedule {

// Operands from which on a Cat is stored by kernels of its own, one an operand: where its elements
// are computed one by one, each costs as much as one of every operand.
inline constexpr size_t kManyParts = 17;

// Elements [start, start + size) of a Cat's axis, which are one operand's.
struct CatPart {
  int64_t start = 0;
  int64_t size = 0;
};

// The parts of a Cat, in order; those of operands that are Cats along its axis in their place. None
// for other nodes.
std::vector<CatPart> cat_parts(const graph::Graph& graph, graph::Value v);

// By node: whether it is a Cat of known sizes that kernels of its own store, part by part.
std::vector<bool> stored_by_parts(const graph::Graph& graph);

}  // namespace rune::schedule
