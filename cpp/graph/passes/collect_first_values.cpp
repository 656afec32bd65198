// Moves carried values out of loops that are determined by the first iteration that has one.
#include <cstdlib>
#include <optional>

#include "graph/passes/iterations.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

namespace rune::graph {

namespace {

// A carried 0-d integer whose final value is `value` of the first iteration in which that is not 0.
// It starts as 0. In each iteration, it becomes `chosen`: the carried one if it differs from 0,
// otherwise `value`.
struct FirstValue {
  int64_t index = 0;
  Value carry, differs, chosen, value;
};

bool is_zero(const Graph& graph, Value v) {
  const auto* constant = graph[v].as<Const_Scalar>();
  return constant && constant->value == Scalar::zero(graph[v].dtype());
}

std::optional<FirstValue> first_value(const Graph& graph, Value end, int64_t index,
                                      const std::vector<std::vector<uint32_t>>& users) {
  const std::vector<Value>& inputs = graph[end].inputs;
  const size_t k = 1 + static_cast<size_t>(index);
  const Value chosen = inputs[k], initial = inputs[k + num_carried(graph[end])];
  const Node& where = graph[chosen];
  const auto* ternary = where.as<Ternary>();
  if (!ternary || ternary->op != AluOp::Where || !is_integer(where.dtype()) ||
      !where.shape().empty() || !is_zero(graph, initial))
    return std::nullopt;
  const FirstValue first{index, where.inputs[1], where.inputs[0], chosen, where.inputs[2]};
  const auto* carry = graph[first.carry].as<Carry>();
  const auto* differs = graph[first.differs].as<Binop>();
  if (!carry || carry->index != index || graph[first.carry].inputs[1] != inputs[0] || !differs ||
      differs->op != AluOp::Cmpne || graph[first.differs].inputs[0] != first.carry ||
      !is_zero(graph, graph[first.differs].inputs[1]) || users[first.carry.id].size() != 2 ||
      users[first.differs.id].size() != 1)
    return std::nullopt;
  for (const uint32_t user : users[chosen.id])
    if (Value{user} != end && !graph.nodes[user].as<Loop_Result>()) return std::nullopt;
  return first;
}

// The first element that is not 0, or 0 if there is none.
Value first_element(Builder& b, Value all) {
  const Value zero = b.full(Scalar::zero(b.dtype(all)), b.shape(all));
  const Value is_any = b.alu(AluOp::Cmpne, {all, zero});
  const Value count = b.scan(ReduceOp::Add, b.cast(is_any, DType::Int32), 0);
  const Value one = b.full(Scalar::of(DType::Int32, 1), b.shape(all));
  const Value is_first = b.alu(AluOp::And, {is_any, b.alu(AluOp::Cmpeq, {count, one})});
  const Value first = b.alu(AluOp::Where, {is_first, all, zero});
  return b.reshape(b.reduce(ReduceOp::Add, first, {0}), {});
}

// The graph in which the loop stores the values of all iterations, by number.
Graph collect(const Graph& graph, Value end, const FirstValue& first,
              const Iterations& iterations) {
  const Dim number = (Dim(iterations.counter) - iterations.first) * iterations.step;
  const size_t initial = 1 + num_carried(graph[end]) + static_cast<size_t>(first.index);
  Value start;
  return rewrite(graph, [&](Builder& b, uint32_t id, const Node& node, std::vector<Value> inputs) {
    const Value v{id};
    const auto* result = node.as<Loop_Result>();
    if (v == first.carry) {
      start = b.full(Scalar::zero(node.dtype()), {iterations.count});
      return b.add(Carry{first.index}, {start, inputs[1]});
    }
    if (v == first.differs) return inputs[1];  // any value, because nothing uses it any more
    if (v == first.chosen) return b.add(Update{{number}}, {inputs[1], b.reshape(inputs[2], {1})});
    if (v == end) inputs[initial] = start;
    const Value copy = b.copy(node, std::move(inputs));
    return result && node.inputs[0] == end && result->index == first.index ? first_element(b, copy)
                                                                           : copy;
  });
}

}  // namespace

Graph collect_first_values(Graph graph, const Capabilities& caps) {
  const auto is_end = [](const Node& node) { return node.as<End_Loop>() != nullptr; };
  if (caps.model != ExecutionModel::Grid || !any_node(graph, is_end)) return graph;
  graph = eliminate_dead_code(graph);
  const size_t count = LoopTree(graph).loops().size();
  for (size_t i = 0; i < count; ++i) {
    const LoopTree tree(graph);
    const LoopTree::Loop& loop = tree.loops()[i];
    const auto iterations = Iterations::of(graph, tree, loop.end);
    if (loop.parent || !iterations || std::abs(iterations->step) != 1 ||
        !iterations->count.is_constant() || have_own_parts(graph, tree, loop))
      continue;
    std::vector<std::vector<uint32_t>> users(graph.size());
    for (uint32_t id = 0; id < graph.size(); ++id)
      for (const Value v : graph.nodes[id].inputs) users[v.id].push_back(id);
    const auto carried = static_cast<int64_t>(num_carried(graph[loop.end]));
    for (int64_t k = 0; k < carried; ++k) {
      const auto first = first_value(graph, loop.end, k, users);
      if (!first) continue;
      // This pays if no iteration then depends on results of another one.
      Graph other = eliminate_dead_code(collect(graph, loop.end, *first, *iterations));
      const LoopTree tree_of_other(other);
      if (have_own_parts(other, tree_of_other, tree_of_other.loops()[i])) graph = std::move(other);
      break;
    }
  }
  return graph;
}

}  // namespace rune::graph
