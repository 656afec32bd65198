// Which rows of a loop become blocks, and how many rows a block has.
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

// Nothing for a loop that stays as it is: one without rows, one with little work, one whose blocks
// would do much of it again, and one whose iterations cores can share as they are. `loop` is in no
// other.
std::optional<BlockChoice> choose_blocks(const Graph& graph, const LoopTree& tree,
                                         const LoopTree::Loop& loop, const RowAxes& axes,
                                         const Capabilities& caps);

}  // namespace rune::graph
