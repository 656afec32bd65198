// The chunks of every value of a graph.
#pragma once

#include <vector>

#include "graph/node.h"
#include "partition/box.h"

namespace rune::partition {

// Into which chunks each value of a graph of constant sizes is divided, so that a block of it needs
// little more of its operands than the blocks at its place. Where operands are divided otherwise,
// the chunks of arguments go before others.
class Chunking {
 public:
  // `arguments`: the chunks of each Placeholder, by index. Both are kept by reference. Throws
  // UserError(Unsupported) that names the node for what has no chunks. Linear.
  Chunking(const graph::Graph& graph, const std::vector<Chunks>& arguments);

  const Chunks& of(graph::Value v) const { return chunks_[v.id]; }
  // Of what a reduction reduces: the axes of the operand of a Reduce_Axis; those of the result of a
  // Contract, then the pairs that it sums over.
  Chunks to_reduce(graph::Value v) const;
  // Whether the value is a reduction along an axis of several chunks.
  bool is_reduced_in_parts(graph::Value v) const;
  // Operands that are to be arrays before blocks of the value are computed, for each block needs
  // more of them than their blocks at its place: all that a function of the host is called with;
  // operands of several chunks along an axis that is needed as a whole.
  std::vector<size_t> stored_operands(graph::Value v) const;
  // Whether the value is to be an array itself, in these chunks, so that it is computed once: what
  // runs along an axis on which its operand has several chunks, and what needs whole operands that
  // have several.
  bool is_stored(graph::Value v) const;

 private:
  Chunks find(graph::Value v) const;
  static void copy_rows(const Chunks& from, size_t rows, Chunks& result);
  Chunks moved(const graph::Node& node, const Ints& sizes) const;
  Chunks joined(const graph::Node& node, const Ints& sizes) const;
  Chunks reduced(graph::Value v) const;
  Chunks contracted(graph::Value v) const;
  Chunks selected(const graph::Node& node) const;
  const Ints& better(const Ints& a, const Ints& b) const;
  int rank(const Ints& axis) const;
  void align(Ints& axis) const;

  const graph::Graph& graph_;
  const std::vector<Chunks>& arguments_;
  std::vector<Chunks> chunks_;  // by node
};

// Which axes of Chunking::to_reduce are reduced.
std::vector<bool> reduced_axes(const graph::Graph& graph, graph::Value v);

}  // namespace rune::partition
