// Chooses which rows of a loop become blocks, and how many rows a block has.
#pragma once

#include <cstdint>
#include <optional>

#include "graph/passes/loop_blocks.h"
#include "types/capabilities.h"

namespace rune::graph {

struct BlockChoice {
  size_t group = 0;  // of RowAxes
  CarriedRows carried;
  int64_t size = 0;  // rows
};

// The choice for an outermost loop. Nothing if it stays as it is: it has no rows or little work,
// its blocks would repeat much of the work, or cores can share its iterations as they are.
std::optional<BlockChoice> choose_blocks(const Graph& graph, const LoopTree& tree,
                                         const LoopTree::Loop& loop, const RowAxes& axes,
                                         const Capabilities& caps);

}  // namespace rune::graph
