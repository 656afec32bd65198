// The program of one block: what a graph computes for some boxes of its values.
#pragma once

#include <vector>

#include "graph/builder.h"
#include "partition/box.h"

namespace rune::partition {

// A box of a value that a block computes. Of a reduction in parts: of what it reduces (see
// Chunking::to_reduce), of which the block computes one partial result.
struct Root {
  graph::Value value;
  bool is_partial = false;
  Box box;
};

class Block {
 public:
  // Finds the boxes of all values behind the roots, up to those that are `given` by node: one box a
  // value, the union of what is needed of it, or a few that lie apart. Linear.
  Block(const graph::Graph& graph, const std::vector<bool>& given, std::vector<Root> roots);

  // The boxes of given values, by node, ascending: what the program takes, in order.
  struct Operand {
    graph::Value value;
    Box box;
  };
  std::vector<Operand> operands() const;

  // Equal for two blocks of the same roots whose programs are equal.
  std::vector<int64_t> key() const;

  // The program: a graph in the core dialect whose arguments are the operands and whose outputs are
  // the roots' boxes. It holds no position of the block.
  graph::Graph program();

 private:
  size_t box_with(graph::Value v, const Box& box) const;
  graph::Value fetch(graph::Builder& b, graph::Value v, const Box& box);
  graph::Value emit(graph::Builder& b, graph::Value v, const Box& box);
  graph::Value emit_moved(graph::Builder& b, graph::Value v, const Box& box);
  graph::Value emit_root(graph::Builder& b, const Root& root);
  graph::Value copy(graph::Builder& b, graph::Value v, const Box& box);

  const graph::Graph& graph_;
  const std::vector<bool>& given_;
  std::vector<Root> roots_;
  std::vector<std::vector<Box>> boxes_;             // by node
  std::vector<std::vector<graph::Value>> emitted_;  // by node and box, of the program
};

}  // namespace rune::partition
