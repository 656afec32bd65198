#include "graph/passes/passes.h"

#include "graph/passes/graph_rewrite.h"

namespace rune::graph {

namespace {

// Operands of a Cat; those of longer ones are looked up too often.
constexpr size_t kMostParts = 64;

}  // namespace

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

}  // namespace rune::graph
