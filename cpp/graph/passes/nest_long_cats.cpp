#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

namespace rune::graph {

// The most operands of a Cat. In a longer one, finding the operand of an element takes too long.
constexpr size_t kMostParts = 64;

Graph nest_long_cats(Graph graph) {
  const auto is_long = [](const Node& node) {
    return node.as<Cat>() && node.inputs.size() > kMostParts;
  };
  if (!any_node(graph, is_long)) return graph;
  return rewrite(graph, [](Builder& b, uint32_t, const Node& node, std::vector<Value> inputs) {
    while (node.as<Cat>() && inputs.size() > kMostParts) {
      std::vector<Value> outer;
      for (auto first = inputs.begin(); first != inputs.end();) {
        const auto last =
            inputs.end() - first > ptrdiff_t{kMostParts} ? first + kMostParts : inputs.end();
        outer.push_back(b.cat({first, last}, node.as<Cat>()->axis));
        first = last;
      }
      inputs = std::move(outer);
    }
    return b.copy(node, std::move(inputs));
  });
}

}  // namespace rune::graph
