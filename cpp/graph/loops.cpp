#include "graph/loops.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "base/error.h"
#include "graph/attribute_dims.h"

namespace rune::graph {

LoopTree::LoopTree(const Graph& graph) {
  std::map<Value, size_t> by_counter;
  std::map<std::string, size_t> by_name;
  std::map<std::string, uint32_t> sizes;  // Loop_Sizes
  for (uint32_t id = 0; id < graph.size(); ++id) {
    if (!graph.nodes[id].as<End_Loop>()) continue;
    const Value counter = graph.nodes[id].inputs[0];
    const SymVar& var = graph[counter].as<Loop_Counter>()->var;
    by_counter[counter] = by_name[var.name] = loops_.size();
    by_end_[id] = loops_.size();
    loops_.push_back({{id}, var, std::nullopt, {}});
  }

  // By node: the loops around it. Inner loops come first.
  std::vector<std::set<size_t>> around(graph.size());
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const Node& node = graph.nodes[id];
    std::set<size_t>& loops = around[id];
    for (const Value v : node.inputs) {
      loops.insert(around[v.id].begin(), around[v.id].end());
      if (node.as<Loop_Result>()) break;  // it is in the loops of its End_Loop
    }
    for_each_dim(node, [&](const Dim& size) {
      for (const Dim::Term& term : size.terms()) {
        if (const auto known = by_name.find(term.var.name); known != by_name.end())
          loops.insert(known->second);
        if (const auto known = sizes.find(term.var.name); known != sizes.end())
          loops.insert(around[known->second].begin(), around[known->second].end());
      }
    });
    if (const auto* size = node.as<Loop_Size>()) sizes[size->var.name] = id;
    if (node.as<Loop_Counter>()) {
      const auto known = by_counter.find({id});
      RUNE_CHECK(known != by_counter.end(), "a value of a loop without an end is used");
      loops.insert(known->second);
    }
    if (node.as<End_Loop>()) {
      const size_t ended = by_counter.at(node.inputs[0]);
      for (size_t k = 1 + num_carried(node); k < node.inputs.size(); ++k)
        RUNE_CHECK(!around[node.inputs[k].id].contains(ended),
                   "an initial value of a loop is a value of that loop");
      loops.erase(ended);
      if (!loops.empty()) loops_[ended].parent = *loops.begin();
    }
    (loops.empty() ? outside_ : loops_[*loops.begin()].members).push_back(id);
  }
  for (const Value v : graph.outputs)
    RUNE_CHECK(around[v.id].empty(), "an output is a value of a loop");
  for (uint32_t id = 0; id < graph.size(); ++id)
    RUNE_CHECK(!graph.nodes[id].as<Sink>() || around[id].empty(),
               "what is computed for its effect is in a loop");
}

const LoopTree::Loop& LoopTree::ended_by(Value end) const {
  const auto found = by_end_.find(end.id);
  RUNE_CHECK(found != by_end_.end(), "not the end of a loop");
  return loops_[found->second];
}

std::vector<uint32_t> LoopTree::body_of(const Loop& loop) const {
  std::vector<uint32_t> nodes = loop.members;
  for (const uint32_t id : loop.members) {
    const auto inner = by_end_.find(id);
    if (inner == by_end_.end()) continue;
    const std::vector<uint32_t> body = body_of(loops_[inner->second]);
    nodes.insert(nodes.end(), body.begin(), body.end());
  }
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

}  // namespace rune::graph
