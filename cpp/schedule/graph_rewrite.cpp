#include "schedule/graph_rewrite.h"

namespace rune::schedule {

using graph::Builder;
using graph::Graph;
using graph::Node;
using graph::Value;

Value copy_node(Builder& builder, const Node& node, std::vector<Value> inputs) {
  return builder.add(node.payload, std::move(inputs), node.meta);
}

Value slice_axis(Builder& builder, Value x, int64_t axis, int64_t low, int64_t high) {
  graph::Pairs limits;
  for (const int64_t size : builder.shape(x)) limits.push_back({0, size});
  limits[axis] = {low, high};
  return builder.shrink(x, std::move(limits));
}

std::vector<int> live_uses(const Graph& graph) {
  std::vector<int> uses(graph.size(), 0);
  for (const Value v : graph.outputs) ++uses[v.id];
  for (uint32_t id = static_cast<uint32_t>(graph.size()); id-- > 0;) {
    const Node& node = graph.nodes[id];
    if (uses[id] == 0 && node.kind() != graph::NodeKind::Sink) continue;
    for (const Value v : node.inputs) ++uses[v.id];
  }
  return uses;
}

std::optional<int64_t> divisor_near(int64_t n, int64_t wanted) {
  for (int64_t up = wanted, down = wanted - 1; up <= 4 * wanted; ++up, --down) {
    if (n % up == 0) return up;
    if (down >= wanted / 2 && down > 1 && n % down == 0) return down;
  }
  return std::nullopt;
}

}  // namespace rune::schedule
