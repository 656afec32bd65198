#include "schedule/analysis/cost.h"

#include <algorithm>
#include <cstdlib>

#include "alu/alu.h"
#include "schedule/indexing/indexing.h"

namespace rune::schedule {

using graph::NodeKind;

double node_operations(const Capabilities& caps, const graph::Graph& graph,
                       const graph::Node& node) {
  const auto cost = [&](AluOp op) { return cost_of(caps, op, graph[node.inputs.back()].dtype()); };
  if (const auto* binop = node.as<graph::Binop>()) return cost(binop->op);
  if (const auto* unary = node.as<graph::Unary>()) return cost(unary->op);
  if (const auto* ternary = node.as<graph::Ternary>()) return cost(ternary->op);
  if (node.kind() == NodeKind::Cast) return 1;
  if (node.kind() == NodeKind::Custom) return 20;  // unknown; so high that it is not repeated
  if (is_sequential(node)) return 4;               // each operation waits for the one before it
  return 0;
}

std::vector<double> tree_operations(const Capabilities& caps, const graph::Graph& graph,
                                    const std::vector<bool>& is_root) {
  std::vector<double> result(graph.size(), 0);
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const graph::Node& node = graph.nodes[id];
    double total = node_operations(caps, graph, node);
    for (const graph::Value input : node.inputs)
      if (!is_root[input.id]) total += result[input.id];
    result[id] = std::min(total, kMaxTreeOperations);
  }
  return result;
}

double operations_ns(const Capabilities& caps, double operations, DType dtype) {
  return operations / caps.operations_per_ns[static_cast<int>(dtype)];
}

double share_held(double cache_bytes, double footprint) {
  // Other programs and conflicts of addresses take a part of a cache. If data are a little larger
  // than the cache, a part of them stays, because replacement is not strictly by age.
  return std::clamp(1.5 - footprint / cache_bytes, 0.0, 1.0);
}

double memory_ns(const Capabilities& caps, double bytes, double footprint, double cores) {
  const double share = cores / caps.num_cores;
  const double main =
      std::min(caps.bandwidth_bytes_per_ns, caps.model == ExecutionModel::Cores
                                                ? cores * caps.core_bandwidth_bytes_per_ns
                                                : share * caps.bandwidth_bytes_per_ns);
  const double last_level = std::max(main, share * caps.last_level_bytes_per_ns);
  const double l2 = std::max(last_level, share * caps.l2_bytes_per_ns);
  const double in_l2 = share_held(cores * static_cast<double>(caps.l2_bytes), footprint);
  const double held =
      std::max(in_l2, share_held(static_cast<double>(caps.last_level_bytes), footprint));
  return bytes * (in_l2 / l2 + (held - in_l2) / last_level + (1 - held) / main);
}

double memory_ns(const Capabilities& caps, double bytes, double footprint) {
  return memory_ns(caps, bytes, footprint, caps.num_cores);
}

double call_ns(size_t arguments) {
  constexpr double kEachCall = 250, kEachArgument = 45;
  return kEachCall + kEachArgument * static_cast<double>(arguments);
}

// Two cores save half the time, but another program may use one of them.
constexpr double kShareFactor = 4;

bool is_worth_sharing(const Capabilities& caps, double one_core_ns) {
  if (caps.model != ExecutionModel::Cores) return true;
  return caps.num_cores > 1 && one_core_ns > kShareFactor * caps.parallel_ns;
}

double mask_operations(const Capabilities& caps, const sym::Expr& condition) {
  const std::vector<uint32_t> variables = condition.variables();
  const bool is_linear = std::all_of(variables.begin(), variables.end(), [&](uint32_t variable) {
    return condition.coefficient_of(variable).has_value();
  });
  // On cores, loops are split where a linear condition changes.
  const bool splits_loops = is_linear && caps.model == ExecutionModel::Cores;
  return splits_loops ? 0.25 : 2;
}

double access_operations(const Capabilities& caps, const Kernel& kernel, const sym::Expr& position,
                         DType dtype, const Walk& walked) {
  // The cost of an element that is not loaded in a vector: an address, a load and an insertion.
  constexpr double kByElement = 4;
  if (caps.model != ExecutionModel::Cores) return 1;
  const std::set<uint32_t> variables = walked.variables_of({position});
  for (const int64_t axis : kernel.iter.mapping.vec) {
    const auto variable = static_cast<uint32_t>(axis);
    if (!variables.count(variable)) continue;
    const auto stride = position.coefficient_of(variable);
    const int64_t lanes = caps.lanes(dtype);
    if (stride && std::abs(*stride) == 1) return 1;
    // All vectors between the elements are loaded, with as many shuffles.
    if (stride && loads_whole_vectors(*stride, lanes)) return 2.0 * std::abs(*stride);
    return kByElement * static_cast<double>(lanes);
  }
  return 1;
}

// With longer strides, shuffling takes longer than gathering.
constexpr int64_t kMostStrideOfVectors = 16;

bool interleaves(int64_t stride, int64_t lanes) {
  return stride >= 2 && stride <= std::min(kMostStrideOfVectors, lanes);
}

bool loads_whole_vectors(int64_t stride, int64_t lanes) {
  const int64_t step = std::abs(stride);
  return step >= 2 && step <= kMostStrideOfVectors && 2 * step <= lanes;
}

double store_ns(const Capabilities& caps, double bytes) {
  // Its operands and the values computed from it also use the caches.
  return memory_ns(caps, 2 * bytes, 3 * bytes) + caps.launch_ns;
}

}  // namespace rune::schedule
