#include "graph/passes/graph_rewrite.h"

namespace rune::graph {

Value copy_node(Builder& builder, const Node& node, std::vector<Value> inputs) {
  return builder.add(node.payload, std::move(inputs), node.meta);
}

Value slice_axis(Builder& builder, Value x, int64_t axis, int64_t low, int64_t high) {
  DimPairs limits;
  for (const Dim& size : builder.shape(x)) limits.push_back({0, size});
  limits[axis] = {low, high};
  return builder.shrink(x, std::move(limits));
}

Value strip_reshapes(const Graph& graph, Value v) {
  while (graph[v].as<Reshape>()) v = graph[v].inputs[0];
  return v;
}

std::optional<int64_t> divisor_near(int64_t n, int64_t wanted) {
  for (int64_t up = wanted, down = wanted - 1; up <= 4 * wanted; ++up, --down) {
    if (n % up == 0) return up;
    if (down >= wanted / 2 && down > 1 && n % down == 0) return down;
  }
  return std::nullopt;
}

}  // namespace rune::graph
