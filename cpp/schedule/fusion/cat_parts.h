// Finds concatenations of many operands, which several kernels store part by part.
#pragma once

#include <vector>

#include "graph/node.h"

namespace rune::schedule {

// A Cat with at least this many operands is stored by a kernel for each operand. (In one kernel,
// each element of the Cat would cost as much as an element of every operand.)
inline constexpr size_t kManyParts = 17;

// An operand's elements [start, start + size) of a Cat's axis.
struct CatPart {
  int64_t start = 0;
  int64_t size = 0;
};

// The parts of a Cat, in order. An operand that is a Cat along the same axis is replaced by its
// parts. Other nodes have no parts.
std::vector<CatPart> cat_parts(const graph::Graph& graph, graph::Value v);

// For each node, whether it is a Cat of known sizes that is stored part by part by separate
// kernels.
std::vector<bool> stored_by_parts(const graph::Graph& graph);

}  // namespace rune::schedule
