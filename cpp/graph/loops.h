// Finds the loops of a source graph and the nodes of each.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "graph/node.h"

namespace rune::graph {

// The loops of a graph in the order in which they end, so that inner loops come before outer ones.
// All nodes of the graph must be live.
class LoopTree {
 public:
  // Throws InternalError if a value of a loop is used outside of it, or if a loop has no End_Loop.
  explicit LoopTree(const Graph& graph);

  struct Loop {
    Value end;  // its End_Loop
    SymVar counter;
    std::optional<size_t> parent;   // the innermost loop around it
    std::vector<uint32_t> members;  // nodes of its body that are in no inner loop, ascending
  };
  const std::vector<Loop>& loops() const { return loops_; }
  // The nodes that are in no loop, ascending.
  const std::vector<uint32_t>& outside() const { return outside_; }
  // The loop that this End_Loop ends.
  const Loop& ended_by(Value end) const;
  // The nodes of the loop and of all loops in it, with the ends of these, ascending.
  std::vector<uint32_t> body_of(const Loop& loop) const;

 private:
  std::vector<Loop> loops_;
  std::vector<uint32_t> outside_;
  std::map<uint32_t, size_t> by_end_;
};

}  // namespace rune::graph
