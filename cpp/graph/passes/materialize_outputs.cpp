#include <map>
#include <set>

#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

namespace rune::graph {

namespace {

bool multiplies_with_itself(const Node& node) {
  return node.as<Contract>() && node.inputs[0] == node.inputs[1];
}

// The node with its operands in memory. Host calls and loops read memory, and a contraction may
// keep each operand in a layout of its own. `stored` has the values that are in memory for them, so
// that nodes of the same call or nest have equal operands.
Value with_stored_operands(Builder& b, const Node& node, std::vector<Value> inputs,
                           std::map<Value, Value>& stored) {
  if (node.as<Host_Callback>() || node.as<Loop_Nest>())
    for (Value& v : inputs) {
      const Node& operand = b[v];
      if (!operand.as<Const_Scalar>() && !operand.as<Iota>() && !operand.as<Define_Var>()) continue;
      const auto [known, is_new] = stored.try_emplace(v);
      if (is_new) known->second = b.contiguous(v);
      v = known->second;
    }
  if (multiplies_with_itself(node)) inputs[1] = b.add(Reshape{b.shape(inputs[1])}, {inputs[1]});
  return b.copy(node, std::move(inputs));
}

}  // namespace

Graph materialize_outputs(Graph graph) {
  if (any_node(graph, [](const Node& node) {
        return node.as<Host_Callback>() || node.as<Loop_Nest>() || multiplies_with_itself(node);
      })) {
    std::map<Value, Value> stored;
    graph = rewrite(graph, [&](Builder& b, uint32_t, const Node& node, std::vector<Value> inputs) {
      return with_stored_operands(b, node, std::move(inputs), stored);
    });
  }
  Builder builder(std::move(graph));
  std::set<Value> taken;
  std::vector<Value> outputs;
  for (const Value v : builder.graph().outputs) {
    const Value stripped = strip_reshapes(builder.graph(), v);
    const bool fresh = is_computed(builder[stripped]) && taken.insert(stripped).second;
    outputs.push_back(fresh ? stripped : builder.add(Contiguous{}, {v}));
  }
  builder.set_outputs(std::move(outputs));
  return builder.take();
}

}  // namespace rune::graph
