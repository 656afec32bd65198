#include "schedule/kernel.h"

#include <algorithm>

#include "base/error.h"
#include "base/math.h"

namespace rune::schedule {

namespace {
template <class E, size_t N>
const char* pick(const char* const (&names)[N], E value) {
  return names[static_cast<size_t>(value)];
}
}  // namespace

const char* name_of(ThreadCombination combination) {
  static constexpr const char* kNames[] = {"None", "SharedTree", "Shuffles"};
  return pick(kNames, combination);
}
const char* name_of(StageKind kind) {
  static constexpr const char* kNames[] = {"Reduce", "Map", "Scan", "Scatter"};
  return pick(kNames, kind);
}
const std::vector<Stage>& Kernel::stages() const {
  static const std::vector<Stage> kNone;
  if (const auto* staged = std::get_if<Staged>(&body)) return staged->stages;
  if (const auto* tiled = std::get_if<MatrixTiled>(&body)) return tiled->stages;
  return kNone;
}

std::vector<Stage>& Kernel::mutable_stages() {
  RUNE_CHECK(!std::holds_alternative<Phased>(body), name, " has phases and no stages");
  return const_cast<std::vector<Stage>&>(stages());
}

const std::vector<Kernel>& Kernel::phases() const {
  static const std::vector<Kernel> kNone;
  const auto* phased = std::get_if<Phased>(&body);
  return phased ? phased->phases : kNone;
}

const MatrixPlan* Kernel::matrix() const {
  const auto* tiled = std::get_if<MatrixTiled>(&body);
  return tiled ? &tiled->plan : nullptr;
}

const Combination* Kernel::combination() const {
  const auto* staged = std::get_if<Staged>(&body);
  return staged && staged->combine ? &*staged->combine : nullptr;
}

int64_t Kernel::lanes() const {
  const MatrixPlan* plan = matrix();
  if (!plan) return iter.mapping.lanes;
  return plan->piece.value_or(plan->m * plan->n * plan->groups[0] * plan->groups[1] /
                              iter.mapping.threads);
}

int64_t Kernel::points_at_once() const {
  if (const MatrixPlan* plan = matrix())
    return plan->block_size(0) * plan->block_size(1) / iter.mapping.threads;
  const auto copies = [&](const Ints& axes) {
    int64_t product = 1;
    for (const int64_t axis : axes) product *= iter.unroll(axis);
    return product;
  };
  int64_t most = 1;  // stages run one after the other
  for (const Stage& stage : stages()) most = std::max(most, copies(stage.axes));
  return copies(outer_axes(*this)) * most;
}

int64_t Kernel::workgroup_tile(int64_t axis) const {
  const MatrixPlan* plan = matrix();
  if (plan && plan->divides(axis)) return plan->block_size(axis == plan->rows ? 0 : 1);
  return iter.tiles[axis].front();
}

const Mirror* Kernel::mirror() const {
  const auto* staged = std::get_if<Staged>(&body);
  return staged && staged->mirror ? &*staged->mirror : nullptr;
}

std::optional<int64_t> Kernel::carried_axis() const {
  const Ints& serial = iter.mapping.serial;
  if (serial.empty() || std::count(serial.begin(), serial.end(), serial[0]) < 2)
    return std::nullopt;
  return contains(reduced_axes(*this), serial[0]) ? std::optional(serial[0]) : std::nullopt;
}

bool Kernel::deals_points_to_threads() const {
  const Mapping& mapping = iter.mapping;
  return !matrix() && !mapping.thread.empty() && contains(mapping.block, mapping.thread[0]);
}

bool Kernel::deals_squares() const {
  const Mapping& mapping = iter.mapping;
  return deals_points_to_threads() &&
         std::any_of(mapping.block.begin(), mapping.block.end(),
                     [&](int64_t axis) { return iter.tiles[axis].front() > 1; });
}

int64_t Kernel::workgroups() const {
  int64_t count = 1;
  for (const int64_t axis : iter.mapping.block)
    count *= ceil_div(iter.extent(axis), workgroup_tile(axis));
  const Mapping& mapping = iter.mapping;
  if (mapping.mirrored == true) {
    const int64_t side = ceil_div(iter.extent(mapping.block[0]), workgroup_tile(mapping.block[0]));
    return side * (side + 1) / 2;
  }
  return deals_points_to_threads() && !deals_squares()
             ? ceil_div(count, mapping.threads * mapping.points.value_or(1))
             : ceil_div(count, mapping.teams.value_or(1));
}

int64_t Kernel::workgroups_sharing(const Stage& stage) const {
  const Mapping& mapping = iter.mapping;
  if (!stage.depth || mapping.threads > 1 || carried_axis()) return 1;
  const Ints loops = outer_loops(*this);
  const auto has_one_iteration = [&](int64_t axis) {
    const Ints& tiles = iter.tiles[axis];
    return contains(mapping.block, axis) && tiles.size() > 1 && tiles[0] == tiles[1];
  };
  if (!std::all_of(loops.begin(), loops.begin() + *stage.depth, has_one_iteration)) return 1;
  int64_t count = 1;
  for (auto axis = mapping.block.rbegin(); axis != mapping.block.rend(); ++axis) {
    if (stage.keeps->strides[*axis] != 0) break;
    count *= ceil_div(iter.extent(*axis), workgroup_tile(*axis));
  }
  return count;
}

std::optional<int64_t> Kernel::part_stored(Value v) const {
  for (const Stage& stage : stages())
    for (const StageValue& value : stage.values) {
      if (value.value != v || !value.offset) continue;
      int64_t elements = 1;
      for (size_t i = 0; i < iter.axes.size(); ++i)
        if (value.strides[i] != 0) elements *= iter.axes[i].extent();
      return elements;
    }
  return std::nullopt;
}

const Scratch* Kernel::scratch_of(Value v) const {
  for (const Scratch& buffer : scratch)
    if (buffer.value == v) return &buffer;
  return nullptr;
}

const StageValue* Kernel::stored(Value v) const {
  for (const Stage& stage : stages())
    if (stage.kind != StageKind::Reduce)
      for (const StageValue& value : stage.values)
        if (value.value == v) return &value;
  for (const Kernel& phase : phases())
    if (const StageValue* value = phase.stored(v)) return value;
  return nullptr;
}

Ints outer_axes(const Kernel& kernel) {
  Ints result;
  for (int64_t i = 0; i < static_cast<int64_t>(kernel.iter.axes.size()); ++i) {
    bool inner = false;
    for (const Stage& stage : kernel.stages()) inner |= contains(stage.axes, i);
    if (!inner) result.push_back(i);
  }
  return result;
}

Ints outer_loops(const Kernel& kernel) {
  const Ints outer = outer_axes(kernel);
  Ints loops;
  for (const int64_t axis : kernel.iter.mapping.serial)
    if (contains(outer, axis)) loops.push_back(axis);
  return loops;
}

Ints reduced_axes(const Kernel& kernel) {
  Ints result;
  for (const Stage& stage : kernel.stages())
    if (stage.kind != StageKind::Map)
      result.insert(result.end(), stage.axes.begin(), stage.axes.end());
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
  for (const Stage& stage : kernel.stages())
    if (is_sequential(stage)) last = &stage;
  return last;
}

}  // namespace rune::schedule
