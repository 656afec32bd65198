#include "schedule/matrix_tiles.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/error.h"
#include "base/math.h"

namespace rune::schedule {

namespace {

// A SIMD-group's rectangle of tiles: each loaded tile serves this many products, and the
// accumulators leave enough registers for many threads.
constexpr int64_t kTiles = 4;
// SIMD-groups of a workgroup along rows and columns; they share what they load through the caches.
constexpr int64_t kGroups = 2;
// SIMD-groups that keep a compute unit busy: rectangles shrink before there are fewer.
constexpr int64_t kGroupsPerCore = 4;

class MatrixMapper {
 public:
  MatrixMapper(const Graph& graph, const Capabilities& caps, Kernel& kernel)
      : graph_(graph), caps_(caps), kernel_(kernel), outer_(outer_axes(kernel)) {}

  bool run() {
    if (!is_contraction() || !choose_operation() || !choose_axes()) return false;
    choose_rectangles();
    map();
    return true;
  }

 private:
  int64_t extent(int64_t axis) const { return kernel_.iter.axes[axis].extent(); }

  // The kernel's first and only reduction, over one axis; maps store at its points.
  bool is_contraction() {
    const std::vector<Stage>& stages = kernel_.stages;
    const Stage& first = stages[0];
    if (first.kind != StageKind::Reduce || first.values.size() != 1 || first.axes.size() != 1)
      return false;
    for (size_t s = 1; s < stages.size(); ++s)
      if (stages[s].kind != StageKind::Map || !stages[s].axes.empty()) return false;
    for (const Axis& axis : kernel_.iter.axes)
      if (axis.sym) return false;
    if (graph_[first.values[0].value].kind() != graph::NodeKind::Contract) return false;
    plan_.reduced = first.axes[0];
    const std::vector<Seed> seeds = stage_seeds(graph_, first, axis_variables(kernel_.iter));
    const std::vector<Access> accesses = seed_accesses(graph_, seeds[0]);
    for (size_t i = 0; i < 2; ++i) {
      values_[i] = accesses[i].value;
      positions_[i] = sym::flatten_index(accesses[i].index, graph_[accesses[i].value].shape());
    }
    return true;
  }

  // The dtype of an operand before the kernel widens it.
  DType dtype_as_multiplied(Value v) const {
    const auto& ops = kernel_.ops;
    const graph::Node& node = graph_[v];
    const bool widened =
        node.kind() == graph::NodeKind::Cast && std::find(ops.begin(), ops.end(), v) != ops.end();
    return widened ? graph_[node.inputs[0]].dtype() : node.dtype();
  }

  bool choose_operation() {
    const DType result = graph_[kernel_.stages[0].values[0].value].dtype();
    const std::array<DType, 2> narrow{dtype_as_multiplied(values_[0]),
                                      dtype_as_multiplied(values_[1])};
    for (const DType operands : {narrow[0], graph_[values_[0]].dtype()})
      for (const MatrixOp& op : caps_.matrix_ops) {
        if (op.operands != operands || op.result != result) continue;
        if (operands != graph_[values_[0]].dtype() && narrow[0] != narrow[1]) continue;
        plan_.m = op.m, plan_.n = op.n, plan_.k = op.k;
        plan_.operands = operands;
        return true;
      }
    return false;
  }

  // An axis of the result that only one operand has: for columns preferably one along which results
  // are adjacent, since a thread holds neighbours of a row; else the longest.
  std::optional<int64_t> longest_axis_of(size_t operand, bool adjacent) const {
    std::optional<int64_t> best;
    for (const int64_t axis : outer_) {
      const auto variable = static_cast<uint32_t>(axis);
      if (!positions_[operand].depends_on(variable) || positions_[1 - operand].depends_on(variable))
        continue;
      if (adjacent && kernel_.stages.back().values[0].strides[axis] != 1) continue;
      if (!best || extent(axis) > extent(*best)) best = axis;
    }
    return best;
  }

  bool choose_axes() {
    for (const bool adjacent : {true, false})
      for (const size_t operand : {1, 0}) {
        const auto columns = longest_axis_of(operand, adjacent);
        const auto rows = longest_axis_of(1 - operand, false);
        if (!columns || !rows) continue;
        plan_.columns = *columns;
        plan_.rows = *rows;
        plan_.row_operand = 1 - static_cast<int64_t>(operand);
        return extent(*rows) >= plan_.m && extent(*columns) >= plan_.n &&
               extent(plan_.reduced) >= plan_.k;
      }
    return false;
  }

  void choose_rectangles() {
    int64_t others = 1;
    for (const int64_t axis : outer_)
      if (axis != plan_.rows && axis != plan_.columns) others *= extent(axis);
    const Ints counts{ceil_div(extent(plan_.rows), plan_.m),
                      ceil_div(extent(plan_.columns), plan_.n)};
    plan_.tiles = {std::min(kTiles, counts[0]), std::min(kTiles, counts[1])};
    const auto groups = [&](int side) { return ceil_div(counts[side], plan_.tiles[side]); };
    const int64_t wanted = kGroupsPerCore * caps_.num_cores;
    while (others * groups(0) * groups(1) < wanted &&
           std::max(plan_.tiles[0], plan_.tiles[1]) > 1) {
      int64_t& longer = plan_.tiles[plan_.tiles[0] < plan_.tiles[1]];
      longer = ceil_div(longer, 2);
    }
    plan_.groups = {std::min(kGroups, groups(0)), std::min(kGroups, groups(1))};
    while (plan_.groups[0] * plan_.groups[1] * caps_.simd_width > caps_.max_threads_per_group)
      --plan_.groups[plan_.groups[0] < plan_.groups[1]];
  }

  void map() {
    IterSpace& iter = kernel_.iter;
    Mapping& mapping = iter.mapping;
    iter.tiles.assign(iter.axes.size(), Ints{1});
    iter.tiles[plan_.rows] = {plan_.m * plan_.tiles[0] * plan_.groups[0]};
    iter.tiles[plan_.columns] = {plan_.n * plan_.tiles[1] * plan_.groups[1]};
    iter.tiles[plan_.reduced] = {plan_.k};
    mapping.block = outer_;
    mapping.thread = {plan_.rows, plan_.columns};
    mapping.serial = {plan_.reduced};
    ScheduleContext& context = kernel_.context;
    context.global_dims[0] = 1;
    for (const int64_t axis : outer_)
      context.global_dims[0] *= ceil_div(extent(axis), iter.tiles[axis][0]);
    context.local_dims[0] = plan_.groups[0] * plan_.groups[1] * caps_.simd_width;
    context.upcasted = plan_.tiles[0] * plan_.tiles[1] * plan_.m * plan_.n / caps_.simd_width;
    if (context.device.empty()) context.device = caps_.name;
    kernel_.reduce = ReductionPlan{{plan_.reduced}};
    kernel_.matrix = plan_;
  }

  const Graph& graph_;
  const Capabilities& caps_;
  Kernel& kernel_;
  const Ints outer_;
  std::array<Value, 2> values_;         // operands of the contraction
  std::array<sym::Expr, 2> positions_;  // row-major, of what they read
  MatrixPlan plan_;
};

}  // namespace

bool map_matrix_contraction(const Graph& graph, const Capabilities& caps, Kernel& kernel) {
  const bool has_groups = caps.max_threads_per_group >= caps.simd_width;
  return has_groups && !caps.matrix_ops.empty() && MatrixMapper(graph, caps, kernel).run();
}

std::vector<std::string> verify_matrix_plan(const Graph& graph, const Kernel& kernel) {
  const MatrixPlan& plan = *kernel.matrix;
  if (kernel.stages.empty() || kernel.iter.tiles.size() != kernel.iter.axes.size())
    return {"a matrix plan needs a stage, and tiles for every axis"};
  const Stage& stage = kernel.stages[0];
  if (kernel.iter.mapping.thread != Ints{plan.rows, plan.columns} ||
      stage.axes != Ints{plan.reduced} || stage.values.size() != 1 ||
      graph[stage.values[0].value].kind() != graph::NodeKind::Contract)
    return {"the matrix plan does not match the thread axes and a contraction in stage 0"};
  if (plan.tiles.size() != 2 || plan.groups.size() != 2)
    return {concat("the matrix plan has ", plan.tiles.size(), " and ", plan.groups.size(),
                   " counts of tiles and groups, not 2")};
  std::vector<std::string> violations;
  const auto check = [&](int64_t axis, int64_t size) {
    if (size < 1 || kernel.iter.tiles[axis] != Ints{size})
      violations.push_back(concat("axis ", axis, " has the tiles ",
                                  text::to_text(kernel.iter.tiles[axis]),
                                  ", but the matrix plan needs ", size));
  };
  check(plan.rows, plan.m * plan.tiles[0] * plan.groups[0]);
  check(plan.columns, plan.n * plan.tiles[1] * plan.groups[1]);
  check(plan.reduced, plan.k);
  const int64_t threads = num_elements(kernel.context.local_dims);
  const int64_t groups = plan.groups[0] * plan.groups[1];
  if (groups < 1 || threads % groups != 0)
    violations.push_back(
        concat("the matrix plan divides ", threads, " threads into ", groups, " SIMD-groups"));
  return violations;
}

}  // namespace rune::schedule
