#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

namespace rune::graph {

Graph eliminate_dead_code(const Graph& graph) {
  const std::vector<uint32_t> uses = count_uses(graph);
  return rewrite(graph, [&](Builder& b, uint32_t id, const Node& node, std::vector<Value> inputs) {
    // A Define_Var stays even without uses, because sizes depend on it.
    const bool live =
        uses[id] > 0 || node.as<Sink>() || node.as<Placeholder>() || node.as<Define_Var>();
    return live ? b.append({node.payload, std::move(inputs), node.meta, node.location}) : Value{};
  });
}

}  // namespace rune::graph
