#include "schedule/mapping/widened_operands.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/math.h"
#include "schedule/analysis/accesses.h"
#include "schedule/mapping/mapping.h"

namespace rune::schedule {

namespace {

class OperandKeeper {
 public:
  OperandKeeper(const Graph& graph, const Capabilities& caps, Kernel& kernel, const Kernel* around)
      : graph_(graph), caps_(caps), kernel_(kernel), outer_(outer_axes(kernel)) {
    loops_ = outer_loops(kernel);
    if (around) first_depth_ = static_cast<int64_t>(around->iter.mapping.serial.size());
  }

  void run() {
    const Stage& sums = kernel_.stages()[0];
    if (sums.kind != StageKind::Reduce || sums.values.size() != 1) return;
    if (graph_[sums.values[0].value].kind() != graph::NodeKind::Contract) return;
    const Ints reduced = sums.axes;
    const std::vector<Seed> seeds = stage_seeds(graph_, sums, axis_variables(kernel_.iter));
    std::vector<Value> kept;
    for (const Access& access : seed_accesses(graph_, seeds[0]))
      if (widens(access.value) && !kernel_.scratch_of(access.value) && keep(access, reduced))
        kept.push_back(access.value);
    if (kept.empty()) return;
    for (Stage& stage : kernel_.mutable_stages())
      if (stage.kind == StageKind::Reduce) stage.takes = kept;
  }

 private:
  // Whether a value that the kernel computes has the elements of a narrow one, widened.
  bool widens(Value v) const {
    if (!contains(kernel_.ops, v)) return false;
    const graph::Node& node = graph_[v];
    if (node.kind() == graph::NodeKind::Cast) {
      const DType from = graph_[node.inputs[0]].dtype();
      return node.dtype() == DType::Float32 && is_float(from) && size_of(from) == 2;
    }
    const Evaluation evaluation = evaluation_of(node);
    return (evaluation == Evaluation::Forward || evaluation == Evaluation::Select) &&
           std::any_of(node.inputs.begin(), node.inputs.end(),
                       [&](Value input) { return widens(input); });
  }

  // The number of points of an axis that the loops inside of the first `depth` ones cover.
  int64_t covered(int64_t axis, int64_t depth) const {
    const IterSpace& iter = kernel_.iter;
    const int64_t extent = iter.extent(axis);
    if (!contains(Ints(loops_.begin() + depth, loops_.end()), axis))
      return std::min(extent, iter.tiles[axis].empty() ? 1 : iter.tiles[axis].back());
    return contains(iter.mapping.block, axis) ? std::min(extent, kernel_.workgroup_tile(axis))
                                              : extent;
  }

  // How often the loops inside of the first `depth` ones read each element.
  int64_t reads(const Ints& strides, int64_t depth) const {
    int64_t count = 1;
    for (const int64_t axis : outer_)
      if (strides[axis] == 0 && contains(Ints(loops_.begin() + depth, loops_.end()), axis))
        count *= ceil_div(covered(axis, depth), kernel_.iter.tiles[axis].back());
    return count;
  }

  // Whether the points there are vectors although the operand's element is the same in all lanes.
  bool has_foreign_lanes(const Ints& strides, int64_t depth) const {
    for (int64_t i = 0; i < depth; ++i)
      if (contains(kernel_.iter.mapping.vec, loops_[i]) && strides[loops_[i]] == 0) return true;
    return false;
  }

  // The strides of an array by axis. Nothing if a stride differs from point to point.
  std::optional<Ints> strides_of(const Index& index, const Shape& shape) const {
    const sym::Expr position = flatten_index(index, shape);
    Ints strides;
    for (size_t axis = 0; axis < kernel_.iter.axes.size(); ++axis) {
      const auto along = position.coefficient_of(static_cast<uint32_t>(axis));
      if (!along) return std::nullopt;
      strides.push_back(*along);
    }
    return strides;
  }

  // The strides of the narrow array that an operand widens, if there is a single one.
  std::optional<Ints> narrow_strides(const Access& access) const {
    std::optional<Ints> strides;
    bool several = false;
    walk(graph_, std::vector<Access>{access}, [&](Value v, const std::vector<Demand>& demands) {
      const graph::Node& node = graph_[v];
      if (node.kind() != graph::NodeKind::Cast) return node.inputs.empty();
      several = several || strides || demands.size() != 1;
      strides = strides_of(demands.front().index, node.shape());
      return true;
    });
    return several ? std::nullopt : strides;
  }

  // By axis, the dimension whose index is that axis. Nothing if a dimension's index is no axis.
  std::optional<std::vector<int64_t>> axes_of_dimensions(const Index& index) const {
    std::vector<int64_t> axes;
    for (const sym::Expr& along : index) {
      const std::vector<uint32_t> variables = along.variables();
      if (variables.size() > 1 || along.constant() != 0) return std::nullopt;
      if (!variables.empty() && (along.coefficient_of(variables.front()) != 1 ||
                                 variables.front() >= kernel_.iter.axes.size()))
        return std::nullopt;
      axes.push_back(variables.empty() ? -1 : static_cast<int64_t>(variables.front()));
    }
    return axes;
  }

  // Scratch memory for the part that is read inside of the first `depth` loops. It is row-major,
  // but the dimension of the axis `lanes`, if there is one, is innermost.
  Scratch part(Value v, const std::vector<int64_t>& axes, const Ints& reduced, int64_t lanes,
               int64_t depth) const {
    const Ints shape = bounds_of(graph_[v].shape());
    Scratch info{v, shape, Ints(shape.size(), 0)};
    Ints inner_first;
    for (size_t d = shape.size(); d-- > 0;) {
      const bool reduces = contains(reduced, axes[d]);
      if (!reduces) info.shape[d] = axes[d] < 0 ? 1 : std::min(shape[d], covered(axes[d], depth));
      const bool innermost = lanes >= 0 && axes[d] == lanes;
      inner_first.insert(innermost ? inner_first.begin() : inner_first.end(),
                         static_cast<int64_t>(d));
    }
    // A cache line between rows makes them fall into different cache sets.
    const int64_t line = kCacheLineBytes / size_of(graph_[v].dtype());
    info.elements = 1;
    for (const int64_t d : inner_first) {
      info.strides[d] = info.elements;
      info.elements *= info.shape[d];
      if (d == inner_first.front()) info.elements = round_up(info.elements, line) + line;
    }
    return info;
  }

  bool keep(const Access& access, const Ints& reduced) {
    const Value v = access.value;
    const std::optional<Ints> strides = strides_of(access.index, graph_[v].shape());
    const std::optional<Ints> narrow = narrow_strides(access);
    const std::optional<std::vector<int64_t>> axes = axes_of_dimensions(access.index);
    if (!strides || !narrow || !axes) return false;
    // The axis of the lanes: an outer axis of the operand that has them in the loops, or else a
    // reduced one. Elements that are not adjacent would be gathered one by one, as in the loops.
    int64_t lanes = -1;
    for (const int64_t axis : outer_)
      if ((*strides)[axis] != 0 && contains(kernel_.iter.mapping.vec, axis)) lanes = axis;
    if (lanes >= 0 && std::abs((*narrow)[lanes]) != 1) return false;
    for (const int64_t axis : reduced)
      if (lanes < 0 && (*narrow)[axis] == 1 && kernel_.lanes() > 1) lanes = axis;
    for (int64_t depth = first_depth_; depth <= static_cast<int64_t>(loops_.size()); ++depth) {
      if (reads(*strides, depth) <= 1 || has_foreign_lanes(*strides, depth)) return false;
      Scratch info = part(v, *axes, reduced, lanes, depth);
      if (info.elements * size_of(graph_[v].dtype()) > caps_.l2_bytes / 2) continue;
      kernel_.scratch.push_back(std::move(info));
      add_stage(v, *strides, reduced, lanes, depth);
      return true;
    }
    return false;
  }

  // Adds a stage that fills the scratch memory. It has axes of its own for the reduced ones.
  void add_stage(Value v, Ints strides, const Ints& reduced, int64_t lanes, int64_t depth) {
    IterSpace& iter = kernel_.iter;
    Stage stage;
    for (const int64_t axis : reduced) {
      const auto own = static_cast<int64_t>(iter.axes.size());
      iter.axes.push_back({"w" + std::to_string(own), iter.axes[axis].size});
      iter.tiles.push_back({axis == lanes ? iter.mapping.lanes : 1});
      iter.mapping.serial.push_back(own);
      if (axis == lanes) iter.mapping.vec.push_back(own);
      strides.push_back(std::exchange(strides[axis], 0));
      stage.axes.push_back(own);
      for (Stage& other : kernel_.mutable_stages()) {
        for (StageValue& value : other.values) value.strides.push_back(0);
        if (other.keeps) other.keeps->strides.push_back(0);
      }
    }
    stage.keeps = StageValue{v, std::move(strides)};
    stage.depth = depth;
    std::vector<Stage>& stages = kernel_.mutable_stages();
    stages.insert(std::find_if(stages.begin(), stages.end(),
                               [](const Stage& s) { return s.kind == StageKind::Reduce; }),
                  std::move(stage));
  }

  const Graph& graph_;
  const Capabilities& caps_;
  Kernel& kernel_;
  const Ints outer_;
  Ints loops_;  // the outer axes of loops, outermost first
  int64_t first_depth_ = 0;
};

}  // namespace

void keep_widened_operands(const Graph& graph, const Capabilities& caps, Kernel& kernel,
                           const Kernel* around) {
  OperandKeeper(graph, caps, kernel, around).run();
}

}  // namespace rune::schedule
