#include "schedule/grid_reduction.h"

#include <algorithm>
#include <set>

#include "graph/parallel_work.h"
#include "schedule/indexing/indexing.h"

namespace rune::schedule {

using graph::Node;
using graph::NodeKind;

namespace {

// Elements that a workgroup reduces at least.
constexpr int64_t kLeastElementsOfGroup = 64;

bool is_binop(const Node& node, AluOp op) {
  const auto* binop = node.as<graph::Binop>();
  return binop && binop->op == op;
}

}  // namespace

std::optional<size_t> axis_of_groups(const Shape& reduced, const Capabilities& caps) {
  const int64_t elements = num_elements(reduced);
  for (size_t i = 0; i < reduced.size(); ++i)
    if (reduced[i] >= caps.num_cores && elements / reduced[i] >= kLeastElementsOfGroup) return i;
  return std::nullopt;
}

bool reduces_atomically(const Graph& graph, Value v, const Capabilities& caps) {
  const Node& node = graph[v];
  const auto* reduce = node.as<graph::Reduce_Axis>();
  return reduce && graph::combines_atomically(reduce->op, node.dtype(), caps) &&
         graph::leaves_device_idle(graph[node.inputs[0]].shape(), node.shape(), caps) &&
         axis_of_groups(reduced_shape(graph, v), caps);
}

bool begins_earlier(const Kernel& kernel, Value v) {
  return std::any_of(kernel.inputs.begin(), kernel.inputs.end(),
                     [v](const BufferInfo& buffer) { return buffer.buf_var == v; });
}

std::vector<std::optional<Value>> completing_reductions(const Graph& graph) {
  const std::vector<uint32_t> uses = count_uses(graph);
  std::vector<std::optional<Value>> result(graph.size());
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const auto* reduce = graph.nodes[id].as<graph::Reduce_Axis>();
    if (!reduce || uses[id] == 0) continue;
    Value from = graph.nodes[id].inputs[0];
    while (uses[from.id] == 1 &&
           (graph[from].kind() == NodeKind::Contiguous || graph[from].kind() == NodeKind::Reshape))
      from = graph[from].inputs[0];
    const auto* partial = graph[from].as<graph::Reduce_Axis>();
    if (partial && partial->op == reduce->op && uses[from.id] == 1) result[from.id] = Value{id};
  }
  return result;
}

bool is_completed_elsewhere(const Kernel& kernel,
                            const std::vector<std::optional<Value>>& completing) {
  bool reduces = false;
  for (const Stage& stage : kernel.stages) {
    if (stage.kind != StageKind::Reduce) continue;
    for (const StageValue& value : stage.values) {
      const std::optional<Value>& by = completing[value.value.id];
      if (!by || std::find(kernel.ops.begin(), kernel.ops.end(), *by) != kernel.ops.end())
        return false;
      reduces = true;
    }
  }
  return reduces;
}

bool reduces_moments(const Graph& graph, const Kernel& kernel) {
  for (const Stage& stage : kernel.stages) {
    if (stage.kind != StageKind::Reduce) continue;
    std::set<Value> sums;  // what the stage adds up
    for (const StageValue& value : stage.values)
      if (const auto* reduce = graph[value.value].as<graph::Reduce_Axis>())
        if (reduce->op == ReduceOp::Add) sums.insert(graph[value.value].inputs[0]);
    for (const Value v : sums)
      if (const Node& node = graph[v];
          is_binop(node, AluOp::Mul) && node.inputs[0] == node.inputs[1])
        if (sums.count(node.inputs[0]) && is_binop(graph[node.inputs[0]], AluOp::Sub)) return true;
  }
  return false;
}

void plan_grid_reductions(Schedule& schedule) {
  const std::vector<std::optional<Value>> completing = completing_reductions(schedule.graph);
  for (ScheduleItem& item : schedule.items) {
    auto* kernel = std::get_if<Kernel>(&item.operation);
    if (kernel && kernel->reduce && is_completed_elsewhere(*kernel, completing))
      kernel->reduce->inter_thread = InterThread::GridReduce;
  }
}

}  // namespace rune::schedule
