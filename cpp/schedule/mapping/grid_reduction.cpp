#include "schedule/mapping/grid_reduction.h"

#include "graph/parallel_work.h"
#include "schedule/indexing/indexing.h"

namespace rune::schedule {

using graph::Node;

namespace {

// The least elements that a workgroup reduces.
constexpr int64_t kLeastElementsOfGroup = 64;

}  // namespace

std::optional<size_t> axis_of_groups(const Shape& reduced, const Capabilities& caps) {
  const int64_t elements = max_elements(reduced);
  for (size_t i = 0; i < reduced.size(); ++i) {
    const int64_t size = reduced[i].bound();
    if (size >= caps.num_cores && elements / size >= kLeastElementsOfGroup) return i;
  }
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
  return contains(kernel.inputs, v);
}

}  // namespace rune::schedule
