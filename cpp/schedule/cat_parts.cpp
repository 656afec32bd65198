#include "schedule/cat_parts.h"

#include <algorithm>

#include "graph/symbolic_sizes.h"
#include "schedule/graph_rewrite.h"

namespace rune::schedule {

using graph::Builder;
using graph::Cat;
using graph::Graph;
using graph::Node;
using graph::Value;

namespace {

bool is_nested(const Graph& graph, const Node& cat, Value operand) {
  const Cat* inner = graph[operand].as<Cat>();
  return inner && inner->axis == cat.as<Cat>()->axis;
}

void collect_parts(const Graph& graph, Value v, int64_t start, std::vector<CatPart>& parts) {
  const Node& node = graph[v];
  for (const Value operand : node.inputs) {
    const int64_t size = graph[operand].shape()[node.as<Cat>()->axis];
    if (is_nested(graph, node, operand)) {
      collect_parts(graph, operand, start, parts);
    } else {
      parts.push_back({start, size});
    }
    start += size;
  }
}

}  // namespace

std::vector<CatPart> cat_parts(const Graph& graph, Value v) {
  std::vector<CatPart> parts;
  if (graph[v].as<Cat>()) collect_parts(graph, v, 0, parts);
  return parts;
}

std::vector<bool> stored_by_parts(const Graph& graph) {
  std::vector<bool> result(graph.size(), false), inner(graph.size(), false);
  std::vector<size_t> parts(graph.size(), 1);
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const Node& node = graph.nodes[id];
    if (!node.as<Cat>()) continue;
    parts[id] = 0;
    for (const Value operand : node.inputs) {
      const bool nested = is_nested(graph, node, operand);
      parts[id] += nested ? parts[operand.id] : 1;
      if (nested) inner[operand.id] = true;
    }
  }
  const std::vector<SymVar> vars = graph.symbolic_vars();
  for (uint32_t id = 0; id < graph.size(); ++id)
    result[id] = graph.nodes[id].as<Cat>() && !inner[id] && parts[id] >= kManyParts &&
                 !graph::is_symbolic(vars, graph.nodes[id].shape());
  return result;
}

Graph nest_long_cats(Graph graph) {
  const auto is_long = [](const Node& node) {
    return node.as<Cat>() && node.inputs.size() > kMostParts;
  };
  if (!any_node(graph, is_long)) return graph;
  return rebuild(graph, [](Builder& builder, const Node& node, std::vector<Value> inputs) {
    while (node.as<Cat>() && inputs.size() > kMostParts) {
      std::vector<Value> outer;
      for (size_t i = 0; i < inputs.size(); i += kMostParts) {
        const auto first = inputs.begin() + static_cast<std::ptrdiff_t>(i);
        const size_t count = std::min(kMostParts, inputs.size() - i);
        outer.push_back(
            builder.add(node.payload, {first, first + static_cast<std::ptrdiff_t>(count)}));
      }
      inputs = std::move(outer);
    }
    return copy_node(builder, node, std::move(inputs));
  });
}

}  // namespace rune::schedule
