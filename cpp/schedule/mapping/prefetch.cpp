#include "schedule/mapping/prefetch.h"

#include <algorithm>
#include <cstdlib>

#include "base/math.h"
#include "schedule/analysis/accesses.h"
#include "schedule/indexing/indexing.h"
#include "schedule/mapping/mapping.h"

namespace rune::schedule {

namespace {

// The number of gathered elements between a prefetch and its load. It covers main memory's latency,
// and the caches still hold the elements.
constexpr int64_t kElementsAhead = 128;

// The distance between a row's prefetch and its load. Processors themselves prefetch only to the
// end of a page of 4 KiB. For later stages, the row is in a cache.
constexpr int64_t kBytesAhead = 8 << 10;

// Adds a prefetch, at most one for each buffer, so that nothing is prefetched twice.
void add_prefetch(Kernel& kernel, const Prefetch& prefetch) {
  if (std::none_of(kernel.prefetches.begin(), kernel.prefetches.end(),
                   [&](const Prefetch& other) { return other.from == prefetch.from; }))
    kernel.prefetches.push_back(prefetch);
}

// The stored value from which v comes by movement and conversions alone.
std::optional<Value> stored(const Graph& graph, const Kernel& kernel, Value v) {
  while (!contains(kernel.inputs, v)) {
    const graph::Node& node = graph[v];
    if (node.kind() != graph::NodeKind::Cast && evaluation_of(node) != Evaluation::Forward)
      return std::nullopt;
    v = node.inputs[0];
  }
  return v;
}

// Whether adjacent elements along the gather's last dimension come from arbitrary positions.
bool gathers_elements(const Graph& graph, Value v) {
  const graph::Node& node = graph[v];
  const auto rank = static_cast<int64_t>(graph[node.inputs[0]].shape().size());
  return node.as<graph::Gather>()->axis + 1 == rank;
}

void plan_gathers(const Graph& graph, const Capabilities& caps, Kernel& kernel) {
  for (const Value v : kernel.ops) {
    const graph::Node& node = graph[v];
    if (evaluation_of(node) != Evaluation::Gathered || !gathers_elements(graph, v)) continue;
    const Shape& shape = node.shape();
    if (shape.empty() || shape.back().bound() < 2 * kElementsAhead) continue;
    const Value source = node.inputs[0];
    if (!contains(kernel.inputs, source) || bytes_of(graph[source]) <= caps.last_level_bytes)
      continue;
    if (!stored(graph, kernel, node.inputs[1])) continue;
    add_prefetch(kernel, {source, std::nullopt, kElementsAhead});
  }
}

// The innermost loop around a kernel's stages, if the first of several reduces rows.
std::optional<int64_t> axis_of_rows(const Graph& graph, const Kernel& kernel) {
  int stages = 0;
  for (const Stage& stage : kernel.stages()) {
    if (stage.depth) return std::nullopt;
    stages += !stage.axes.empty();
  }
  const Stage& first = kernel.stages().front();
  if (stages < 2 || first.kind != StageKind::Reduce || first.axes.size() != 1 ||
      graph[first.values.front().value].kind() != graph::NodeKind::Reduce_Axis)
    return std::nullopt;
  const Ints outer = outer_axes(kernel);
  const Ints& serial = kernel.iter.mapping.serial;
  const auto axis = std::find_if(serial.rbegin(), serial.rend(),
                                 [&](int64_t serial_axis) { return contains(outer, serial_axis); });
  if (axis == serial.rend() || contains(kernel.iter.mapping.vec, *axis)) return std::nullopt;
  return *axis;
}

void plan_rows(const Graph& graph, const Capabilities& caps, Kernel& kernel) {
  const std::optional<int64_t> rows = axis_of_rows(graph, kernel);
  if (!rows) return;
  const int64_t along = kernel.stages().front().axes[0];
  for (const MemoryAccess& access : memory_accesses(graph, kernel)) {
    if (access.stage != 0 || access.is_store) continue;
    const Value v = access.value;
    if (!contains(kernel.inputs, v) || bytes_of(graph[v]) <= caps.l2_bytes) continue;
    const auto row = access.position.coefficient_of(static_cast<uint32_t>(*rows));
    if (!row || *row < 1 || access.position.coefficient_of(static_cast<uint32_t>(along)) != 1)
      continue;
    const int64_t step = *row * kernel.iter.unroll(*rows);
    const int64_t ahead = kBytesAhead / size_of(graph[v].dtype());
    add_prefetch(kernel, {v, along, step < ahead ? ceil_div(ahead, step) * step : ahead});
  }
}

// Whether a kernel of one loop nest transposes squares of an operand in registers.
bool transposes(const Graph& graph, const Kernel& kernel) {
  const Ints& vec = kernel.iter.mapping.vec;
  if (!computes_squares(kernel) || kernel.stages().front().depth || vec.size() != 1) return false;
  const std::vector<MemoryAccess> accesses = memory_accesses(graph, kernel);
  return std::any_of(accesses.begin(), accesses.end(), [&](const MemoryAccess& access) {
    const auto along = access.position.coefficient_of(static_cast<uint32_t>(vec[0]));
    return !access.is_store && along && std::abs(*along) >= kernel.lanes();
  });
}

// Plans prefetches for kernels that transpose squares. A square is stored to rows of an output, one
// vector in each. If rows do not begin at cache lines, most stores cross two lines and wait for the
// line that no earlier store has fetched. Prefetching one line ahead is enough, because squares of
// other rows are stored in between.
void plan_squares(const Graph& graph, const Capabilities& caps, Kernel& kernel) {
  if (!transposes(graph, kernel)) return;
  for (const Value v : kernel.outputs)
    if (2 * bytes_of(graph[v]) > caps.l2_bytes && !contains(kernel.nontemporal, v))
      add_prefetch(kernel, {v, std::nullopt, 2 * kernel.lanes() - 1});
}

}  // namespace

void plan_prefetches(const Graph& graph, const Capabilities& caps, Kernel& kernel) {
  if (!caps.has_prefetch) return;
  plan_gathers(graph, caps, kernel);
  plan_rows(graph, caps, kernel);
  plan_squares(graph, caps, kernel);
}

}  // namespace rune::schedule
