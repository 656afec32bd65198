// Which rows of a loop become blocks, and how many rows a block has.
#pragma once

#include <cstdint>
#include <optional>

#include "graph/passes/loop_blocks.h"
#include "types/capabilities.h"

namespace rune::graph {

struct BlockChoice {
  std::vector<GroupBlocks> groups;  // of RowAxes, outer ones first
  CarriedRows carried;
};

// Nothing for a loop that stays as it is: one without rows, one with little work, one whose blocks
// would do much of it again, and one whose iterations can be shared as they are. On cores `loop` is
// in no other. On a grid a block is one row, of all groups that have rows: a thread runs the loop
// on it, where that takes less time than launches for each iteration.
std::optional<BlockChoice> choose_blocks(const Graph& graph, const LoopTree& tree,
                                         const LoopTree::Loop& loop, const RowAxes& axes,
                                         const Capabilities& caps);

}  // namespace rune::graph
