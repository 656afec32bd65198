// Chooses which rows of a loop become blocks, and how many rows a block has.
#pragma once

#include <optional>

#include "graph/passes/loop_blocks.h"
#include "types/capabilities.h"

namespace rune::graph {

struct BlockChoice {
  std::vector<GroupBlocks> groups;  // of RowAxes, outer ones first
  CarriedRows carried;
};

// The choice for a loop; on cores, for an outermost one. Nothing if the loop stays unchanged: it
// has no rows or little work, its blocks would repeat much of the work, or cores can share its
// iterations without blocks. On a grid, a block is one row of every group that has rows. A thread
// runs the loop on it, if that takes less time than the launches of each iteration.
std::optional<BlockChoice> choose_blocks(const Graph& graph, const LoopTree& tree,
                                         const LoopTree::Loop& loop, const RowAxes& axes,
                                         const Capabilities& caps);

}  // namespace rune::graph
