#include "schedule/cost.h"

#include <algorithm>

#include "schedule/indexing.h"

namespace rune::schedule {

using graph::NodeKind;

double node_operations(const graph::Node& node) {
  const auto cost = [](AluOp op) { return info(op).has(alu_flags::Costly) ? 20.0 : 1.0; };
  if (const auto* binop = node.as<graph::Binop>()) return cost(binop->op);
  if (const auto* unary = node.as<graph::Unary>()) return cost(unary->op);
  if (const auto* ternary = node.as<graph::Ternary>()) return cost(ternary->op);
  if (node.kind() == NodeKind::Cast) return 1;
  if (node.kind() == NodeKind::Custom) return 20;  // unknown: not to be done twice
  if (is_sequential(node)) return 4;  // each waits for the one before it
  return 0;
}

std::vector<double> tree_operations(const graph::Graph& graph, const std::vector<bool>& is_root) {
  std::vector<double> result(graph.size(), 0);
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const graph::Node& node = graph.nodes[id];
    double total = node_operations(node);
    for (const graph::Value input : node.inputs)
      if (!is_root[input.id]) total += result[input.id];
    result[id] = std::min(total, kMaxTreeOperations);
  }
  return result;
}

double operations_ns(const Capabilities& caps, double operations, DType dtype) {
  // Simple operations run at about half of the multiply-add rate, and wide dtypes at fewer lanes.
  return operations / (caps.flops_per_ns / 2) * (size_of(dtype) > 4 ? 2 : 1);
}

double memory_ns(const Capabilities& caps, double bytes) {
  return bytes / caps.bandwidth_bytes_per_ns;
}

}  // namespace rune::schedule
