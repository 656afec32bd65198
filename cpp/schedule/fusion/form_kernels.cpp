#include "schedule/fusion/form_kernels.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>

#include "schedule/analysis/accesses.h"

namespace rune::schedule {

using sym::Expr;

namespace {

std::optional<Value> sequential_value(const Graph& graph, const Cluster& cluster) {
  for (const Value v : cluster.values)
    if (is_sequential(graph[v])) return v;
  return std::nullopt;
}

// A loop over an axis that is no longer fills few vectors. Longer axes are not collapsed if masks
// differ from row to row, because adjacent rows then share loads.
constexpr int64_t kShortAxis = 16;

class Former {
 public:
  Former(const Graph& graph, const Cluster& cluster, const Fusion& fusion)
      : graph_(graph),
        cluster_(cluster),
        fusion_(fusion),
        in_cluster_(cluster.values.begin(), cluster.values.end()) {}

  Kernel run() {
    for (size_t i = 0; i < cluster_.outer.size(); ++i) add_axis("o", cluster_.outer[i]);
    add_reduce_stages();
    if (const std::optional<Value> v = sequential_value(graph_, cluster_)) {
      if (cluster_.stores_beginning) add_beginning_stage(*v);
      add_sequential_stage(*v);
    }
    add_map_stages();
    return finish();
  }

  // The kernel that stores a part of a Cat.
  Kernel run_part(const CatPart& part) {
    const graph::Node& node = graph_[cluster_.values.front()];
    Shape sizes = node.shape();
    const int64_t axis = node.as<graph::Cat>()->axis;
    sizes[axis] = part.size;
    const Ints strides = contiguous_strides(node.shape());
    Stage stage;
    stage.values = {{cluster_.values.front(), {}, part.start * strides[axis]}};
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (sizes[d] == 1) continue;
      add_axis("o", sizes[d]);
      stage.values[0].strides.push_back(strides[d]);
    }
    kernel_.mutable_stages() = {std::move(stage)};
    return finish();
  }

  // The kernel that stores the initial elements of a Scatter, or of reductions whose workgroups
  // combine atomically.
  Kernel run_beginning() {
    Stage stage;
    const Shape& shape = graph_[cluster_.values.front()].shape();
    for (const Dim& size : shape) add_axis("o", size);
    for (const Value v : cluster_.values) stage.values.push_back({v, contiguous_strides(shape)});
    kernel_.mutable_stages() = {std::move(stage)};
    return finish();
  }

 private:
  Kernel finish() {
    for (Stage& stage : kernel_.mutable_stages())
      for (StageValue& value : stage.values) value.strides.resize(kernel_.iter.axes.size(), 0);
    add_buffers(collapse_axes());
    return std::move(kernel_);
  }

  bool reduces(Value v) const { return evaluation_of(graph_[v]) == Evaluation::Reduction; }

  int64_t add_axis(const char* prefix, const Dim& size) {
    const auto position = static_cast<int64_t>(kernel_.iter.axes.size());
    kernel_.iter.axes.push_back({prefix + std::to_string(position), size});
    return position;
  }

  // The level of a value. A reduction comes after those that it reads, directly or through maps of
  // this kernel.
  int level(Value v) {
    const auto known = levels_.find(v.id);
    if (known != levels_.end()) return known->second;
    int result = 0;
    for (const Use& use : fusion_.uses.of(v.id))
      if (in_cluster_.count(use.value)) result = std::max(result, level(use.value));
    if (reduces(v)) ++result;
    return levels_[v.id] = result;
  }

  void set_stride(StageValue& value, int64_t axis, int64_t stride) {
    if (static_cast<int64_t>(value.strides.size()) <= axis) value.strides.resize(axis + 1, 0);
    value.strides[axis] = stride;
  }

  StageValue outer_value(Value v) {
    StageValue result{v, {}};
    const Ints strides = contiguous_strides(graph_[v].shape());
    const std::vector<int>& axes = cluster_.axes.at(v.id);
    for (size_t d = 0; d < axes.size(); ++d)
      if (axes[d] >= 0) set_stride(result, axes[d], strides[d]);
    return result;
  }

  // Reductions of one level over equal sub-shapes share a stage.
  void add_reduce_stages() {
    std::map<int, std::map<Shape, std::vector<Value>, ShapeOrder>> levels;
    for (const Value v : cluster_.values)
      if (reduces(v)) levels[level(v)][reduced_shape(graph_, v)].push_back(v);
    for (const auto& [level, groups] : levels)
      for (const auto& [sizes, values] : groups) add_reduce_stage(sizes, values);
  }

  void add_reduce_stage(const Shape& sizes, const std::vector<Value>& values) {
    Stage stage;
    stage.kind = StageKind::Reduce;
    const Ints strides = contiguous_strides(sizes);
    for (const Value v : values) stage.values.push_back(outer_value(v));
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i] == 1) continue;
      const int64_t axis = add_axis("r", sizes[i]);
      stage.axes.push_back(axis);
      for (StageValue& value : stage.values) set_stride(value, axis, strides[i]);
      if (cluster_.axis_of_groups == i) axis_of_groups_ = axis;
    }
    kernel_.mutable_stages().push_back(std::move(stage));
  }

  void add_beginning_stage(Value v) {
    Stage stage;
    stage.values = {outer_value(v)};
    const int64_t along = sequential_axis(graph_[v]);
    const Shape& shape = graph_[v].shape();
    stage.axes = {add_axis("i", shape[along])};
    set_stride(stage.values[0], stage.axes[0], contiguous_strides(shape)[along]);
    kernel_.mutable_stages().push_back(std::move(stage));
  }

  void add_sequential_stage(Value v) {
    Stage stage;
    const bool scans = graph_[v].as<graph::Scan>() != nullptr;
    stage.kind = scans ? StageKind::Scan : StageKind::Scatter;
    stage.values = {outer_value(v)};
    const int64_t along = sequential_axis(graph_[v]);
    const Shape& shape = graph_[v].shape();
    stage.axes = {add_axis("r", scans ? shape[along] : reduced_shape(graph_, v)[0])};
    set_stride(stage.values[0], stage.axes[0], scans ? contiguous_strides(shape)[along] : 1);
    kernel_.mutable_stages().push_back(std::move(stage));
  }

  // Stored values over equal inner axes share a stage.
  void add_map_stages() {
    std::map<Shape, std::vector<Value>, ShapeOrder> groups;
    for (const Value v : cluster_.values) {
      if (!fusion_.is_stored[v.id] || is_sequential(graph_[v])) continue;
      groups[reduces(v) ? Shape{} : inner_shape(v)].push_back(v);
    }
    for (const auto& [sizes, values] : groups) {
      Stage stage;
      for (const Dim& size : sizes) stage.axes.push_back(add_axis("i", size));
      for (const Value v : values) {
        StageValue value = outer_value(v);
        const Ints strides = contiguous_strides(graph_[v].shape());
        size_t next = 0;
        for (size_t d = 0; d < strides.size(); ++d)
          if (is_inner(v, d)) set_stride(value, stage.axes[next++], strides[d]);
        stage.values.push_back(std::move(value));
      }
      kernel_.mutable_stages().push_back(std::move(stage));
    }
  }

  bool is_inner(Value v, size_t d) const {
    return graph_[v].shape()[d] != 1 && cluster_.axes.at(v.id)[d] < 0;
  }

  Shape inner_shape(Value v) const {
    Shape result;
    for (size_t d = 0; d < graph_[v].shape().size(); ++d)
      if (is_inner(v, d)) result.push_back(graph_[v].shape()[d]);
    return result;
  }

  bool is_input(Value v) const {
    if (evaluation_of(graph_[v]) == Evaluation::Memory) return true;
    return fusion_.uses.is_materialized(v.id) && !in_cluster_.count(v);
  }

  // Whether axis `a` and the axis `b` inside of it, of constant size, can be one axis. That is so
  // if a step along a moves every position as far as size(b) steps along b.
  bool can_collapse(int64_t a, int64_t b, const std::vector<MemoryAccess>& accesses) const {
    if (a < cluster_.num_fixed || a == axis_of_groups_ || b == axis_of_groups_ ||
        kernel_.iter.axes[b].is_symbolic())
      return false;
    const int64_t size = kernel_.iter.axes[b].size.constant();
    for (const Stage& stage : kernel_.stages())
      for (const StageValue& value : stage.values)
        if (value.strides[a] != value.strides[b] * size) return false;
    const auto moves_alike = [&](const Expr& expr) {
      const auto along_a = expr.coefficient_of(static_cast<uint32_t>(a));
      const auto along_b = expr.coefficient_of(static_cast<uint32_t>(b));
      return along_a && along_b && *along_a == *along_b * size;
    };
    // Such a condition holds from some index of a on, or up to one. For the common axis, that is a
    // multiple of size(b).
    const auto is_by_steps = [&](const Expr& condition) {
      const auto along_a = condition.coefficient_of(static_cast<uint32_t>(a));
      return along_a && std::abs(*along_a) == 1 && !condition.depends_on(static_cast<uint32_t>(b));
    };
    for (const MemoryAccess& access : accesses) {
      if (!moves_alike(access.position)) return false;
      for (const Expr& condition : access.mask.conditions())
        if (!moves_alike(condition) && !(size <= kShortAxis && is_by_steps(condition)))
          return false;
    }
    return true;
  }

  void collapse(int64_t a, int64_t b) {
    std::vector<Axis>& axes = kernel_.iter.axes;
    axes[b].size = axes[a].size * axes[b].size.constant();
    axes.erase(axes.begin() + a);
    for (Stage& stage : kernel_.mutable_stages()) {
      for (StageValue& value : stage.values) value.strides.erase(value.strides.begin() + a);
      std::erase(stage.axes, a);
      for (int64_t& axis : stage.axes) axis -= axis > a;
    }
    axis_of_groups_ -= axis_of_groups_ > a;
  }

  // Collapses axes. Returns the kernel's accesses afterwards.
  std::vector<MemoryAccess> collapse_axes() {
    std::vector<MemoryAccess> accesses = accesses_now();
    bool changed = true;
    while (changed) {
      changed = false;
      std::vector<Ints> nests{outer_axes(kernel_)};
      for (const Stage& stage : kernel_.stages()) nests.push_back(stage.axes);
      for (const Ints& nest : nests) {
        for (size_t i = nest.size(); i-- > 1 && !changed;)
          if (can_collapse(nest[i - 1], nest[i], accesses)) {
            collapse(nest[i - 1], nest[i]);
            accesses = accesses_now();
            changed = true;
          }
        if (changed) break;
      }
    }
    return accesses;
  }

  std::vector<MemoryAccess> accesses_now() {
    computed_.clear();
    return memory_accesses(graph_, kernel_, [this](Value v) { return is_input(v); }, &computed_);
  }

  void add_buffers(const std::vector<MemoryAccess>& accesses) {
    std::set<uint32_t> read, written;
    for (const MemoryAccess& access : accesses)
      (access.is_store ? written : read).insert(access.value.id);
    if (axis_of_groups_ >= 0)
      for (const Value v : cluster_.values) read.insert(v.id);
    // Inputs are in the order of their use, which is the same in all steps of an expanded loop.
    const auto add_input = [&](uint32_t id) {
      if (read.erase(id)) kernel_.inputs.push_back(Value{id});
    };
    for (const uint32_t id : computed_)
      for (const Value v : graph_.nodes[id].inputs) add_input(v.id);
    while (!read.empty()) add_input(*read.begin());
    for (const uint32_t id : written) kernel_.outputs.push_back(Value{id});
    for (const uint32_t id : computed_) kernel_.ops.push_back(Value{id});
  }

  const Graph& graph_;
  const Cluster& cluster_;
  const Fusion& fusion_;
  const std::set<Value> in_cluster_;
  std::map<uint32_t, int> levels_;
  std::set<uint32_t> computed_;
  int64_t axis_of_groups_ = -1;  // the reduced axis that is divided among workgroups
  Kernel kernel_;
};

}  // namespace

std::vector<Kernel> form_kernels(const Graph& graph, const Cluster& cluster, const Fusion& fusion) {
  std::vector<Kernel> kernels;
  for (const CatPart& part : cluster.parts)
    if (part.size > 0) kernels.push_back(Former(graph, cluster, fusion).run_part(part));
  if (!cluster.parts.empty()) return kernels;
  const std::optional<Value> sequential = sequential_value(graph, cluster);
  const bool scatters = sequential && graph[*sequential].as<graph::Scatter>();
  if (cluster.axis_of_groups || (scatters && !cluster.stores_beginning))
    kernels.push_back(Former(graph, cluster, fusion).run_beginning());
  kernels.push_back(Former(graph, cluster, fusion).run());
  return kernels;
}

}  // namespace rune::schedule
