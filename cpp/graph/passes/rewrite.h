// What the passes share: building a graph that replaces another, node by node.
#pragma once

#include <optional>
#include <vector>

#include "graph/node.h"

namespace rune::graph {

// Whether elements are only moved: View, Reshape, Permute, Expand, Pad, Shrink, Flip, Buffer_View.
bool is_movement(NodeKind kind);

// For each node, whether an Assign writes its storage, directly or through movement. Such a node
// stands for a place in memory and not only for a value: it must not be replaced by another one's.
std::vector<bool> written_storage(const Graph& graph);

// A graph in the making. Nodes get the location that was set last.
class Rewriter {
 public:
  explicit Rewriter(size_t expected_nodes) { graph_.nodes.reserve(expected_nodes); }

  // A node with inferred metadata that is not part of the graph yet. `declared` as for `infer`.
  Node make(Payload payload, std::vector<Value> inputs, const Metadata& declared = {}) const;
  // Appends a node that `make` returned.
  Value append(Node node);

  const Node& operator[](Value v) const { return graph_[v]; }
  const Shape& shape(Value v) const { return graph_[v].meta.shape; }
  size_t size() const { return graph_.size(); }
  void set_location(const std::string& location) { location_ = location; }

  // The value that all elements of `v` have, if v is a Const_Scalar, moved or not.
  std::optional<Scalar> splat(Value v) const;
  // A constant of a shape, in the one form that the passes use: Const_Scalar, then a Reshape to
  // sizes 1, then an Expand, each only if needed.
  Value full(Scalar value, const Shape& shape);
  // The movement of a constant, as a constant of its shape; no value if the node is something else
  // or has that form already. Zeros may be padded, others not.
  Value moved_splat(const Node& node);

  Graph take(std::vector<Value> outputs);

 private:
  Value full_of(Value root, const Shape& shape);
  bool is_canonical_splat(const Node& node) const;

  Graph graph_;
  std::vector<Value> roots_;  // by node: the Const_Scalar that it repeats
  std::string location_;
};

// Rebuilds a graph. `replace(rewriter, old_id, old_node, new_inputs)` returns the value, in the new
// graph, that takes the place of the old node.
template <class F>
Graph rewrite(const Graph& graph, F&& replace) {
  Rewriter rewriter(graph.size());
  std::vector<Value> map(graph.size());
  const auto mapped = [&](const std::vector<Value>& values) {
    std::vector<Value> result;
    result.reserve(values.size());
    for (const Value v : values) result.push_back(map[v.id]);
    return result;
  };
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const Node& node = graph.nodes[id];
    rewriter.set_location(node.location);
    map[id] = replace(rewriter, id, node, mapped(node.inputs));
  }
  return rewriter.take(mapped(graph.outputs));
}

}  // namespace rune::graph
