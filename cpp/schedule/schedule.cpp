#include "schedule/schedule.h"

#include <algorithm>

namespace rune::schedule {

namespace {
template <class E, size_t N>
const char* pick(const char* const (&names)[N], E value) {
  return names[static_cast<size_t>(value)];
}
}  // namespace

const char* name_of(AxisRole role) {
  static constexpr const char* kNames[] = {"Normal", "Reduction"};
  return pick(kNames, role);
}
const char* name_of(MemoryScope scope) {
  static constexpr const char* kNames[] = {"Global", "Shared"};
  return pick(kNames, scope);
}
const char* name_of(HintKind kind) {
  static constexpr const char* kNames[] = {"Vectorize", "Unroll", "Prefetch", "Pipeline",
                                           "Nontemporal"};
  return pick(kNames, kind);
}
const char* name_of(IntraThread plan) {
  static constexpr const char* kNames[] = {"Tree", "Welford", "Shfl", "None"};
  return pick(kNames, plan);
}
const char* name_of(InterThread plan) {
  static constexpr const char* kNames[] = {"SharedTree", "Atomic", "GridReduce", "None"};
  return pick(kNames, plan);
}
const char* name_of(StageKind kind) {
  static constexpr const char* kNames[] = {"Reduce", "Map", "Scan", "Scatter"};
  return pick(kNames, kind);
}
const char* name_of(SyncType type) {
  static constexpr const char* kNames[] = {"Barrier", "Fence", "Event"};
  return pick(kNames, type);
}
const char* name_of(SyncScope scope) {
  static constexpr const char* kNames[] = {"Threadgroup", "Device", "System"};
  return pick(kNames, scope);
}
const char* name_of(DependencyKind kind) {
  static constexpr const char* kNames[] = {"Data", "Control"};
  return pick(kNames, kind);
}
const char* name_of(FusionType type) {
  static constexpr const char* kNames[] = {"Elementwise", "Reduction", "Mixed"};
  return pick(kNames, type);
}

BufferInfo whole_buffer(const Graph& graph, Value v, bool is_input) {
  BufferInfo info;
  info.buf_var = v;
  info.dtype = graph[v].dtype();
  info.layout.shape = graph[v].shape();
  info.layout.strides = contiguous_strides(info.layout.shape);
  info.layout.alignment = size_of(info.dtype);
  for (size_t i = 0; i < info.layout.shape.size(); ++i)
    info.layout.contiguous_axes.push_back(static_cast<int64_t>(i));
  info.alloc.size_bytes = num_elements(info.layout.shape) * size_of(info.dtype);
  info.is_input = is_input;
  info.is_output = !is_input;
  return info;
}

Ints outer_axes(const Kernel& kernel) {
  Ints result;
  for (int64_t i = 0; i < static_cast<int64_t>(kernel.iter.axes.size()); ++i) {
    bool inner = false;
    for (const Stage& stage : kernel.stages) inner |= contains(stage.axes, i);
    if (!inner) result.push_back(i);
  }
  return result;
}

bool contracts(const Graph& graph, const Kernel& kernel) {
  return std::any_of(kernel.ops.begin(), kernel.ops.end(),
                     [&](Value v) { return graph[v].kind() == graph::NodeKind::Contract; });
}

bool is_sequential(const Stage& stage) {
  return stage.kind == StageKind::Scan || stage.kind == StageKind::Scatter;
}

const Stage* sequential_stage(const Kernel& kernel) {
  const Stage* last = nullptr;
  for (const Stage& stage : kernel.stages)
    if (is_sequential(stage)) last = &stage;
  return last;
}

int64_t Kernel::unroll(int64_t axis) const {
  for (const LoopHint& hint : hints)
    if (hint.kind == HintKind::Unroll && hint.axis == axis) return hint.amount;
  return 1;
}

int64_t Kernel::lanes() const {
  if (matrix) {
    const int64_t threads = context.local_dims[0] / (matrix->groups[0] * matrix->groups[1]);
    return matrix->m * matrix->n / threads;
  }
  int64_t lanes = 1;
  for (const LoopHint& hint : hints)
    if (hint.kind == HintKind::Vectorize) lanes = std::max(lanes, hint.amount);
  return lanes;
}

std::optional<int64_t> Kernel::part_stored(Value v) const {
  for (const Stage& stage : stages)
    for (const StageValue& value : stage.values) {
      if (value.value != v || !value.offset) continue;
      int64_t elements = 1;
      for (size_t i = 0; i < iter.axes.size(); ++i)
        if (value.strides[i] != 0) elements *= iter.axes[i].extent();
      return elements;
    }
  return std::nullopt;
}

const BufferInfo* Kernel::scratch_of(Value v) const {
  for (const BufferInfo& buffer : scratch)
    if (buffer.buf_var == v) return &buffer;
  return nullptr;
}

const StageValue* Kernel::stored(Value v) const {
  for (const Stage& stage : stages)
    if (stage.kind != StageKind::Reduce)
      for (const StageValue& value : stage.values)
        if (value.value == v) return &value;
  for (const Kernel& phase : phases)
    if (const StageValue* value = phase.stored(v)) return value;
  return nullptr;
}

}  // namespace rune::schedule
