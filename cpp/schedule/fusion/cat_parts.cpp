#include "schedule/fusion/cat_parts.h"

namespace rune::schedule {

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
    const int64_t size = graph[operand].shape()[node.as<Cat>()->axis].constant();
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
  for (uint32_t id = 0; id < graph.size(); ++id)
    result[id] = graph.nodes[id].as<Cat>() && !inner[id] && parts[id] >= kManyParts &&
                 graph.nodes[id].shape()[graph.nodes[id].as<Cat>()->axis].is_constant();
  return result;
}

}  // namespace rune::schedule
