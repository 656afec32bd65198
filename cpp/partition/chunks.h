// Chooses the chunks of every value of a graph.
#pragma once

#include <vector>

#include "graph/node.h"
#include "partition/box.h"

namespace rune::partition {

// The chunks of each value of a graph with constant sizes. They are chosen so that a block needs
// little more of its operands than their blocks at the same position. If operands have different
// chunks, those of arguments win.
class Chunking {
 public:
  // `arguments`: the chunks of each Placeholder, by index. Both objects must outlive this one.
  // Throws UserError(Unsupported), which names the node, if a value has no chunks. Linear.
  Chunking(const graph::Graph& graph, const std::vector<Chunks>& arguments);

  const Chunks& of(graph::Value v) const { return chunks_[v.id]; }
  // The chunks of a reduction's operand. For a Reduce_Axis, they are along the axes of its operand.
  // For a Contract, they are along the axes of its result and the pairs of axes that it sums over.
  Chunks to_reduce(graph::Value v) const;
  // Whether the value is a reduction along an axis of several chunks.
  bool is_reduced_in_parts(graph::Value v) const;
  // The operands that must be stored as arrays before blocks of the value are computed, because
  // each block needs more of them than their blocks at its position. These are all operands of a
  // host call, and operands with several chunks along an axis that is needed as a whole.
  std::vector<size_t> stored_operands(graph::Value v) const;
  // Whether the value itself must be stored as an array, so that it is computed only once. That is
  // the case for a scan along an axis with several chunks, and for a value that needs whole
  // operands with several chunks.
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

// For each axis of Chunking::to_reduce, whether it is reduced.
std::vector<bool> reduced_axes(const graph::Graph& graph, graph::Value v);

}  // namespace rune::partition
