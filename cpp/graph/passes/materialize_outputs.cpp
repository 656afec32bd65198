#include "graph/passes/passes.h"

#include <algorithm>
#include <set>

#include "alu/eval.h"
#include "graph/passes/graph_rewrite.h"

namespace rune::graph {

namespace {

bool reduces_nothing(const Graph& graph, const Node& node) {
  const bool reduces = node.kind() == NodeKind::Reduce_Axis || node.kind() == NodeKind::Contract;
  if (!reduces || max_elements(node.shape()) == 0) return false;
  return std::any_of(node.inputs.begin(), node.inputs.end(),
                     [&](Value v) { return max_elements(graph[v].shape()) == 0; });
}

bool multiplies_with_itself(const Node& node) {
  return node.kind() == NodeKind::Contract && node.inputs[0] == node.inputs[1];
}

// What reads no element or calls the host becomes what kernels and callbacks can take, and the
// operands of a contraction two values, of which each can be kept in its own layout.
Graph prepare_operands(Graph graph) {
  const auto is_concerned = [&](const Node& node) {
    return node.kind() == NodeKind::Host_Callback || multiplies_with_itself(node) ||
           reduces_nothing(graph, node);
  };
  if (!any_node(graph, is_concerned)) return graph;
  return rebuild(graph, [&](Builder& builder, const Node& node, std::vector<Value> inputs) {
    if (node.kind() == NodeKind::Host_Callback)
      for (Value& v : inputs)
        if (builder[v].as<Const_Scalar>() || builder[v].as<Define_Var>()) v = builder.contiguous(v);
    if (multiplies_with_itself(node))
      inputs[1] = builder.add(Reshape{builder[inputs[1]].shape()}, {inputs[1]});
    if (!reduces_nothing(graph, node)) return copy_node(builder, node, std::move(inputs));
    const auto* reduce = node.as<Reduce_Axis>();
    const ReduceOp op = reduce ? reduce->op : ReduceOp::Add;
    return builder.full(identity(op, node.dtype()), node.shape());
  });
}

}  // namespace

Graph materialize_outputs(Graph graph) {
  std::set<Value> taken;
  Builder builder(prepare_operands(std::move(graph)));
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
