#include "schedule/prefetch.h"

#include <algorithm>

#include "schedule/indexing.h"

namespace rune::schedule {

namespace {

// Gathered elements between a prefetch and its load: more than main memory's latency takes, and few
// enough that the caches still hold them.
constexpr int64_t kElementsAhead = 128;

// The value's memory, if nothing but movement and conversions lies between.
std::optional<Value> stored(const Graph& graph, const Kernel& kernel, Value v) {
  const auto is_input = [&](Value value) {
    return std::any_of(kernel.inputs.begin(), kernel.inputs.end(),
                       [&](const BufferInfo& buffer) { return buffer.buf_var == value; });
  };
  while (!is_input(v)) {
    const graph::Node& node = graph[v];
    if (node.kind() != graph::NodeKind::Cast && evaluation_of(node) != Evaluation::Forward)
      return std::nullopt;
    v = node.inputs[0];
  }
  return v;
}

// Whether neighbours of the gather's last dimension are elements from anywhere.
bool gathers_elements(const Graph& graph, Value v) {
  const graph::Node& node = graph[v];
  const auto* gather = node.as<graph::Gather>();
  return !gather || gather->axis + 1 == static_cast<int64_t>(graph[node.inputs[0]].shape().size());
}

}  // namespace

void plan_prefetches(const Graph& graph, const Capabilities& caps, Kernel& kernel) {
  if (!caps.has_prefetch) return;
  for (const Value v : kernel.ops) {
    const graph::Node& node = graph[v];
    if (evaluation_of(node) != Evaluation::Gathered || !gathers_elements(graph, v)) continue;
    const Shape& shape = node.shape();
    if (shape.empty() || shape.back() < 2 * kElementsAhead) continue;
    const Value source = node.inputs[0];
    const BufferInfo* buffer = nullptr;
    for (const BufferInfo& input : kernel.inputs)
      if (input.buf_var == source) buffer = &input;
    if (!buffer || buffer->alloc.size_bytes <= caps.last_level_bytes) continue;
    if (!stored(graph, kernel, node.inputs[1])) continue;
    const LoopHint hint{HintKind::Prefetch, std::nullopt, source, kElementsAhead};
    if (std::find(kernel.hints.begin(), kernel.hints.end(), hint) == kernel.hints.end())
      kernel.hints.push_back(hint);
  }
}

}  // namespace rune::schedule
