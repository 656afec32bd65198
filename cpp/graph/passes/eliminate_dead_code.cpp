#include "graph/passes/eliminate_dead_code.h"

namespace rune::graph {

Graph eliminate_dead_code(const Graph& graph) {
  std::vector<bool> live(graph.size());
  for (const Value v : graph.outputs) live[v.id] = true;
  for (size_t id = graph.size(); id-- > 0;) {
    const Node& node = graph.nodes[id];
    // What a Define_Var says of sizes holds without a use.
    if (node.as<Sink>() || node.as<Placeholder>() || node.as<Define_Var>()) live[id] = true;
    if (live[id])
      for (const Value v : node.inputs) live[v.id] = true;
  }
  Graph result;
  std::vector<Value> map(graph.size());
  const auto renumber = [&](std::vector<Value>& values) {
    for (Value& v : values) v = map[v.id];
  };
  for (size_t id = 0; id < graph.size(); ++id) {
    if (!live[id]) continue;
    map[id] = {static_cast<uint32_t>(result.size())};
    result.nodes.push_back(graph.nodes[id]);
    renumber(result.nodes.back().inputs);
  }
  result.outputs = graph.outputs;
  renumber(result.outputs);
  return result;
}

}  // namespace rune::graph
