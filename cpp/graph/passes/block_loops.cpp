// Loops over blocks of rows around loops that do not mix rows.
#include <map>
#include <set>
#include <string>

#include "graph/passes/loop_blocks.h"
#include "graph/passes/loop_choice.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

namespace rune::graph {

namespace {

struct Blocked {
  RowAxes axes;
  BlockChoice choice;
};

}  // namespace

Graph block_loops(Graph graph, const Capabilities& caps) {
  const auto is_end = [](const Node& node) { return node.as<End_Loop>() != nullptr; };
  if (!any_node(graph, is_end)) return graph;
  graph = eliminate_dead_code(graph);
  const LoopTree tree(graph);
  std::map<Value, Blocked> blocked;  // by End_Loop
  std::set<uint32_t> members;        // of these loops
  // Outer loops come first, because the loops inside of them run in their blocks.
  for (size_t i = tree.loops().size(); i-- > 0;) {
    const LoopTree::Loop& loop = tree.loops()[i];
    if (loop.parent && (caps.model == ExecutionModel::Cores || members.contains(loop.end.id)))
      continue;
    RowAxes axes(graph, tree, loop);
    auto choice = choose_blocks(graph, tree, loop, axes, caps);
    if (!choice) continue;
    members.insert(axes.body().begin(), axes.body().end());
    blocked.emplace(loop.end, Blocked{std::move(axes), *std::move(choice)});
  }
  if (blocked.empty()) return graph;

  std::set<std::string> taken;  // names of variables
  for (const Node& node : graph.nodes)
    if (const SymVar* variable = declared_variable(node)) taken.insert(variable->name);
  Builder builder;
  builder.reserve(graph.size());
  std::vector<Value> map(graph.size());
  std::map<Value, std::vector<Value>> results;  // by End_Loop
  for (uint32_t id = 0; id < graph.size(); ++id) {
    if (members.contains(id)) continue;
    const Node& node = graph.nodes[id];
    builder.set_location(node.location);
    if (const auto known = blocked.find({id}); known != blocked.end()) {
      const auto& [axes, choice] = known->second;
      LoopBlocks blocks(graph, tree.ended_by({id}), axes, choice.groups, choice.carried, builder,
                        map);
      results[{id}] = blocks.run(taken);
      continue;
    }
    const auto* result = node.as<Loop_Result>();
    if (result && results.contains(node.inputs[0])) {
      map[id] = results.at(node.inputs[0])[static_cast<size_t>(result->index)];
      continue;
    }
    std::vector<Value> inputs;
    for (const Value v : node.inputs) inputs.push_back(map[v.id]);
    map[id] = builder.copy(node, std::move(inputs));
  }
  std::vector<Value> outputs;
  for (const Value v : graph.outputs) outputs.push_back(map[v.id]);
  builder.set_outputs(std::move(outputs));
  return builder.take();
}

}  // namespace rune::graph
