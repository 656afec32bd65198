// What passes that divide work share.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "graph/builder.h"

namespace rune::graph {

// Rebuilds a graph node by node; `replace(builder, node, inputs)` gives the value for an old node.
template <class F>
Graph rebuild(const Graph& graph, F&& replace) {
  Builder builder;
  std::vector<Value> map;
  for (const Node& node : graph.nodes) {
    std::vector<Value> inputs;
    for (const Value v : node.inputs) inputs.push_back(map[v.id]);
    builder.set_location(node.location);
    map.push_back(replace(builder, node, std::move(inputs)));
  }
  std::vector<Value> outputs;
  for (const Value v : graph.outputs) outputs.push_back(map[v.id]);
  builder.set_outputs(std::move(outputs));
  return builder.take();
}

template <class F>
bool any_node(const Graph& graph, F&& holds) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), holds);
}

Value copy_node(Builder& builder, const Node& node, std::vector<Value> inputs);

// Elements `low` to `high` - 1 along an axis.
Value slice_axis(Builder& builder, Value x, int64_t axis, int64_t low, int64_t high);

// The value that `v` is a reshape of, or `v`.
Value strip_reshapes(const Graph& graph, Value v);

// A divisor of n near `wanted` (from half of it to four times), nearest first.
std::optional<int64_t> divisor_near(int64_t n, int64_t wanted);

}  // namespace rune::graph
