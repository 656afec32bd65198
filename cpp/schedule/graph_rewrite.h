// What the scheduler's rewrites of graphs share.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "graph/builder.h"

namespace rune::schedule {

// Rebuilds a graph node by node; `replace(builder, node, inputs)` gives the value for an old node.
template <class F>
graph::Graph rebuild(const graph::Graph& graph, F&& replace) {
  graph::Builder builder;
  std::vector<graph::Value> map;
  for (const graph::Node& node : graph.nodes) {
    std::vector<graph::Value> inputs;
    for (const graph::Value v : node.inputs) inputs.push_back(map[v.id]);
    builder.set_location(node.location);
    map.push_back(replace(builder, node, std::move(inputs)));
  }
  std::vector<graph::Value> outputs;
  for (const graph::Value v : graph.outputs) outputs.push_back(map[v.id]);
  builder.set_outputs(std::move(outputs));
  return builder.take();
}

template <class F>
bool any_node(const graph::Graph& graph, F&& holds) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), holds);
}

graph::Value copy_node(graph::Builder& builder, const graph::Node& node,
                       std::vector<graph::Value> inputs);

// Elements `low` to `high` - 1 along an axis.
graph::Value slice_axis(graph::Builder& builder, graph::Value x, int64_t axis, int64_t low,
                        int64_t high);

// How many operands of live nodes, and outputs, each node is.
std::vector<int> live_uses(const graph::Graph& graph);

// A divisor of n near `wanted` (from half of it to four times), nearest first.
std::optional<int64_t> divisor_near(int64_t n, int64_t wanted);

}  // namespace rune::schedule
