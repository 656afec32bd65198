#include "graph/parallel_work.h"

#include <algorithm>

namespace rune::graph {

namespace {

// A reduction of fewer elements is done by one core or workgroup.
constexpr int64_t kLongReduction = 1 << 17;

bool has_atomic(ReduceOp op, DType dtype, const Capabilities& caps) {
  return caps.model == ExecutionModel::Grid &&
         caps.atomic_ops[static_cast<size_t>(dtype)][static_cast<size_t>(alu_of(op))];
}

}  // namespace

double reduced_elements(const Graph& graph, const Node& node) {
  double result = 1;
  const auto size = [&](int64_t axis) {
    return static_cast<double>(graph[node.inputs[0]].shape()[axis].bound());
  };
  if (const auto* reduce = node.as<Reduce_Axis>())
    for (const int64_t axis : reduce->axes) result *= size(axis);
  if (const auto* contract = node.as<Contract>())
    for (const auto& pair : contract->contract) result *= size(pair.first);
  return result;
}

bool is_long_reduction(const Shape& from) {
  return max_elements(from) >= kLongReduction;
}

bool leaves_device_idle(const Shape& from, const Shape& to, const Capabilities& caps) {
  const int64_t busy = (caps.model == ExecutionModel::Grid ? 4 : 2) * caps.num_cores;
  return is_long_reduction(from) && max_elements(to) < busy;
}

int64_t parts_of_grid(const Capabilities& caps) {
  return std::max(4 * caps.num_cores, 64);
}

bool combines_atomically(ReduceOp op, DType dtype, const Capabilities& caps) {
  const bool exact = !is_float(dtype) || op == ReduceOp::Max || op == ReduceOp::Min;
  return exact && has_atomic(op, dtype, caps);
}

bool updates_atomically(const Scatter& scatter, DType dtype, const Capabilities& caps) {
  const std::optional<ReduceOp> op = reduce_op(scatter.mode);
  return op && has_atomic(*op, dtype, caps);
}

}  // namespace rune::graph
