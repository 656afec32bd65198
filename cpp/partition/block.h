// Makes the program of one block, which computes some boxes of a graph's values.
#pragma once

#include <vector>

#include "graph/builder.h"
#include "partition/box.h"

namespace rune::partition {

// A box of a value that a block computes. If `is_partial`, the value is a reduction in parts: the
// box is one of its operand (see Chunking::to_reduce), and the block computes one partial result.
struct Root {
  graph::Value value;
  bool is_partial = false;
  Box box;
};

class Block {
 public:
  // Finds the boxes of all values that the roots need, down to the values that are `given` (by
  // node). A value has one box that contains all needed elements, or a few boxes that lie apart.
  // Linear.
  Block(const graph::Graph& graph, const std::vector<bool>& given, std::vector<Root> roots);

  // The boxes of given values, in ascending order of nodes. They are the program's arguments, in
  // this order.
  struct Operand {
    graph::Value value;
    Box box;
  };
  std::vector<Operand> operands() const;

  // Two blocks of the same roots have equal keys if their programs are equal.
  std::vector<int64_t> key() const;

  // The program: a graph of core nodes. Its arguments are the operands, and its outputs the roots'
  // boxes. It does not depend on the block's position.
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
  std::vector<std::vector<graph::Value>> emitted_;  // the program's values, by node and box
};

}  // namespace rune::partition
