// Shared by graph passes: builds a graph that replaces another one, node by node.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "graph/builder.h"

namespace rune::graph {

// Whether elements are only moved: View, Reshape, Permute, Expand, Pad, Shrink, Flip, Buffer_View.
bool is_movement(NodeKind kind);

template <class F>
bool any_node(const Graph& graph, F&& holds) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), holds);
}

// The constant that replaces a movement of a constant. No value if the node is something else, or
// is already in the form of Builder::full. Padding is 0, so only zeros may be padded.
Value moved_splat(Builder& builder, const Node& node);

// The value that `v` is a reshape of, or `v`.
Value strip_reshapes(const Graph& graph, Value v);

// x with one axis of constant size divided into two axes, of `parts` and of size / parts elements.
Value split_axis(Builder& builder, Value x, int64_t axis, int64_t parts);

// A divisor of n near `wanted` (from half of it to four times), nearest first.
std::optional<int64_t> divisor_near(int64_t n, int64_t wanted);

// A divisor of n near `wanted`. If there is none, the number of parts from `wanted` to twice
// `wanted` with the least remainder.
int64_t parts_near(int64_t n, int64_t wanted);

// Rebuilds a graph. `replace(builder, id, node, inputs)` returns the value of the new graph that
// takes the place of node `id` of the old one. `inputs` are the values of the new graph for its
// operands. New nodes get the old node's location. At the end, `output(builder, old, v)` returns
// the output in the place of the old output `old`, whose value is `v` in the new graph.
template <class F, class G>
Graph rewrite(const Graph& graph, F&& replace, G&& output) {
  Builder builder;
  builder.reserve(graph.size());
  std::vector<Value> map(graph.size());
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const Node& node = graph.nodes[id];
    std::vector<Value> inputs;
    inputs.reserve(node.inputs.size());
    for (const Value v : node.inputs) inputs.push_back(map[v.id]);
    builder.set_location(node.location);
    map[id] = replace(builder, id, node, std::move(inputs));
  }
  std::vector<Value> outputs;
  for (const Value v : graph.outputs) outputs.push_back(output(builder, v, map[v.id]));
  builder.set_outputs(std::move(outputs));
  return builder.take();
}

template <class F>
Graph rewrite(const Graph& graph, F&& replace) {
  return rewrite(graph, replace, [](Builder&, Value, Value v) { return v; });
}

}  // namespace rune::graph
