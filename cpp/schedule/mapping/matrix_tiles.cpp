#include "schedule/mapping/matrix_tiles.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/error.h"
#include "base/math.h"
#include "schedule/mapping/mapping.h"

namespace rune::schedule {

namespace {

// How a contraction is divided. A SIMD-group (or thread) has several tiles along rows and columns.
// So each loaded tile serves many products, and the accumulators still leave enough registers for
// many threads. A workgroup has several SIMD-groups (or threads), which share loaded tiles. If
// there are too few SIMD-groups to keep compute units busy, rectangles shrink to `least_tiles`
// tiles.
struct Division {
  Ints tiles, groups;
  int64_t least_tiles, simd_groups_per_core;
};
const Division kByMatrixOperations{{4, 4}, {2, 2}, 1, 4};
const Division kByLargeOperations{{4, 4}, {2, 4}, 1, 4};  // on tiles of more than 8 x 8
const Division kByThreads{{8, 2}, {16, 16}, 4, 6};
// The most elements that a thread's vector multiplies.
constexpr int64_t kMostLanes = 4;
// A contraction by threads needs workgroups for at least a quarter of the compute units. With
// fewer, a thread for each point is faster.
constexpr int64_t kCoresPerWorkgroup = 4;
// Limits of panels. Bytes along the reduced axis: so many that whole sectors of memory are read.
// The sides of a block: its elements must be used often enough. And the number of panels along the
// axis: so many that loads are hidden.
constexpr int64_t kPanelBytes = 64, kLeastPanelBytes = 32;
constexpr int64_t kLeastSide = 32;
constexpr int64_t kLeastPanels = 4;
constexpr int64_t kMostCopies = 2;
constexpr int64_t kMostPadding = 8;  // elements

// The number of adjacent elements that each of `width` threads holds of a tile with this spread.
int64_t neighbours_of_piece(const Ints& spread, int64_t width) {
  size_t i = 0;
  while (int64_t{1} << i < width) ++i;
  int64_t count = 1;
  for (; i < spread.size() && spread[i] == count; ++i) count *= 2;
  return count;
}

class MatrixMapper {
 public:
  MatrixMapper(const Graph& graph, const Capabilities& caps, Kernel& kernel)
      : graph_(graph), caps_(caps), kernel_(kernel), outer_(outer_axes(kernel)) {}

  bool run() {
    if (!find_operands()) return false;
    if (choose_operation() && choose_axes()) {
      const bool is_large = plan_.m * plan_.n > 64;
      choose_rectangles(is_large ? kByLargeOperations : kByMatrixOperations, caps_.simd_width);
      // Pieces can only be loaded from panels.
      if (!choose_panels() && plan_.piece && !choose_multiply_adds()) return false;
    } else if (!choose_multiply_adds()) {
      return false;
    }
    map();
    return true;
  }

 private:
  int64_t extent(int64_t axis) const { return kernel_.iter.axes[axis].extent(); }

  bool find_operands() {
    if (!is_contraction(graph_, kernel_)) return false;
    const Stage& first = kernel_.stages()[0];
    plan_.reduced = first.axes[0];
    const std::vector<Seed> seeds = stage_seeds(graph_, first, axis_variables(kernel_.iter));
    const std::vector<Access> accesses = seed_accesses(graph_, seeds[0]);
    for (size_t i = 0; i < 2; ++i) {
      values_[i] = accesses[i].value;
      positions_[i] = flatten_index(accesses[i].index, graph_[accesses[i].value].shape());
    }
    return true;
  }

  // The dtype of an operand before the kernel widens it.
  DType dtype_as_multiplied(Value v) const {
    const auto& ops = kernel_.ops;
    const graph::Node& node = graph_[v];
    const bool widened = node.kind() == graph::NodeKind::Cast && contains(ops, v);
    return widened ? graph_[node.inputs[0]].dtype() : node.dtype();
  }

  bool choose_operation() {
    const DType result = graph_[kernel_.stages()[0].values[0].value].dtype();
    const std::array<DType, 2> narrow{dtype_as_multiplied(values_[0]),
                                      dtype_as_multiplied(values_[1])};
    for (const DType operands : {narrow[0], graph_[values_[0]].dtype()})
      for (const MatrixOp& op : caps_.matrix_ops) {
        if (op.operands != operands || op.result != result) continue;
        if (operands != graph_[values_[0]].dtype() && narrow[0] != narrow[1]) continue;
        plan_.m = op.m, plan_.n = op.n, plan_.k = op.k;
        plan_.operands = operands;
        const int64_t held = op.m * op.n / caps_.simd_width;
        const int64_t neighbours = neighbours_of_piece(op.spread[2], caps_.simd_width);
        if (neighbours < held) plan_.piece = neighbours;
        return true;
      }
    return false;
  }

  // Chooses multiply-adds of single threads, if panels in shared memory serve many of them.
  bool choose_multiply_adds() {
    const DType result = graph_[kernel_.stages()[0].values[0].value].dtype();
    if (is_bool(result) || !caps_.has_arithmetic(result)) return false;
    plan_.m = plan_.k = 1;
    plan_.piece.reset();
    plan_.n = std::min<int64_t>(kMostLanes, caps_.lanes(result));
    plan_.operands = result;
    if (!choose_axes()) return false;
    choose_rectangles(kByThreads, 1);
    return num_workgroups() * kCoresPerWorkgroup >= caps_.num_cores && choose_panels();
  }

  // The longest axis of the result that only one operand has. For columns, an axis along which
  // results are adjacent is preferred, because a thread holds adjacent elements of a row.
  std::optional<int64_t> longest_axis_of(size_t operand, bool adjacent) const {
    std::optional<int64_t> best;
    for (const int64_t axis : outer_) {
      const auto variable = static_cast<uint32_t>(axis);
      if (!positions_[operand].depends_on(variable) || positions_[1 - operand].depends_on(variable))
        continue;
      if (adjacent && kernel_.stages().back().values[0].strides[axis] != 1) continue;
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

  // Chooses rectangles for groups of `width` threads.
  void choose_rectangles(const Division& division, int64_t width) {
    width_ = width;
    int64_t others = 1;
    for (const int64_t axis : outer_)
      if (axis != plan_.rows && axis != plan_.columns) others *= extent(axis);
    const Ints counts{ceil_div(extent(plan_.rows), plan_.m),
                      ceil_div(extent(plan_.columns), plan_.n)};
    Ints& tiles = plan_.tiles;
    tiles = {std::min(division.tiles[0], counts[0]), std::min(division.tiles[1], counts[1])};
    const auto groups = [&](int side) { return ceil_div(counts[side], tiles[side]); };
    const int64_t wanted = division.simd_groups_per_core * caps_.num_cores * caps_.simd_width;
    while (others * groups(0) * groups(1) * width < wanted &&
           tiles[0] * tiles[1] > division.least_tiles) {
      int64_t& longer = tiles[tiles[0] < tiles[1]];
      longer = ceil_div(longer, 2);
    }
    plan_.groups = {std::min(division.groups[0], groups(0)),
                    std::min(division.groups[1], groups(1))};
    while (plan_.groups[0] * plan_.groups[1] * width > caps_.max_threads_per_group) {
      int64_t& longer = plan_.groups[plan_.groups[0] < plan_.groups[1]];
      longer = ceil_div(longer, 2);
    }
  }

  int64_t num_workgroups() const {
    int64_t count = 1;
    for (const int64_t axis : outer_)
      count *= ceil_div(extent(axis), axis == plan_.rows      ? plan_.block_size(0)
                                      : axis == plan_.columns ? plan_.block_size(1)
                                                              : 1);
    return count;
  }

  // Chooses panels of both operands in shared memory. If they fit twice, one is filled while the
  // other is multiplied. Returns false if panels do not pay.
  bool choose_panels() {
    if (plan_.block_size(0) < kLeastSide || plan_.block_size(1) < kLeastSide) return false;
    const int64_t element = size_of(plan_.operands);
    MatrixPlan plan = plan_;
    for (plan.copies = kMostCopies; plan.copies >= 1; --plan.copies)
      for (int64_t bytes = kPanelBytes; bytes >= kLeastPanelBytes; bytes /= 2) {
        plan.depth = round_up(bytes / element, plan.k);
        if (panel_bytes(plan) > caps_.shared_memory_bytes) continue;
        if (extent(plan.reduced) < kLeastPanels * plan.depth) return false;
        plan_ = plan;
        return true;
      }
    return false;
  }

  void map() {
    IterSpace& iter = kernel_.iter;
    Mapping& mapping = iter.mapping;
    for (int64_t axis = 0; axis < static_cast<int64_t>(iter.axes.size()); ++axis)
      iter.tiles.push_back(plan_.divides(axis) ? Ints{} : Ints{1});
    mapping.block = outer_;
    mapping.thread = {plan_.rows, plan_.columns};
    mapping.serial = {plan_.reduced};
    mapping.threads = plan_.groups[0] * plan_.groups[1] * width_;
    kernel_.body = MatrixTiled{plan_, std::move(kernel_.mutable_stages())};
  }

  const Graph& graph_;
  const Capabilities& caps_;
  Kernel& kernel_;
  const Ints outer_;
  std::array<Value, 2> values_;         // operands of the contraction
  std::array<sym::Expr, 2> positions_;  // row-major positions of the elements that are read
  MatrixPlan plan_;
  int64_t width_ = 1;  // threads that compute a tile together
};

}  // namespace

std::array<Panel, 2> matrix_panels(const MatrixPlan& plan) {
  const int64_t rows = plan.block_size(0), columns = plan.block_size(1), depth = plan.depth;
  const Panel of_rows = plan.adjacent_tiles(0) > 1
                            ? Panel{rows, depth, rows + plan.n, true}
                            : Panel{rows, depth, depth + std::min(plan.k, kMostPadding)};
  const Panel of_columns = plan.piece
                               ? Panel{depth, columns, depth + std::min(plan.k, kMostPadding), true}
                               : Panel{depth, columns, columns + plan.n};
  return {of_rows, of_columns};
}

Value multiplied_operand(const Graph& graph, Value operand, const MatrixPlan& plan) {
  const graph::Node& node = graph[operand];
  return node.dtype() == plan.operands ? operand : node.inputs[0];
}

int64_t panel_bytes(const MatrixPlan& plan) {
  constexpr int64_t kAlignment = 16;
  int64_t bytes = 0;
  for (const Panel& panel : matrix_panels(plan))
    bytes += round_up(plan.copies * panel.elements() * size_of(plan.operands), kAlignment);
  return bytes;
}

std::optional<MatrixOp> planned_operation(const MatrixPlan& plan, DType result,
                                          const Capabilities& caps) {
  if (plan.m == 1 && plan.k == 1) {
    Ints lanes;
    for (int64_t step = 1; step < plan.n; step *= 2) lanes.push_back(step);
    return MatrixOp{1, plan.n, 1, result, result, {{}, lanes, lanes}};
  }
  for (const MatrixOp& op : caps.matrix_ops)
    if (op.m == plan.m && op.n == plan.n && op.k == plan.k && op.operands == plan.operands &&
        op.result == result)
      return op;
  return std::nullopt;
}

bool map_matrix_contraction(const Graph& graph, const Capabilities& caps, Kernel& kernel) {
  const bool has_groups = caps.max_threads_per_group >= caps.simd_width;
  return has_groups && MatrixMapper(graph, caps, kernel).run();
}

std::vector<std::string> verify_matrix_plan(const Graph& graph, const Kernel& kernel) {
  const MatrixPlan& plan = *kernel.matrix();
  if (kernel.stages().empty()) return {"a matrix plan needs a stage"};
  const Stage& stage = kernel.stages()[0];
  if (kernel.iter.mapping.thread != Ints{plan.rows, plan.columns} ||
      stage.axes != Ints{plan.reduced} || stage.values.size() != 1 ||
      graph[stage.values[0].value].kind() != graph::NodeKind::Contract)
    return {"the matrix plan does not match the thread axes and a contraction in stage 0"};
  if (plan.row_operand != 0 && plan.row_operand != 1)
    return {concat("the matrix plan takes the rows from operand ", plan.row_operand, " of 2")};
  const auto is_pair = [](const Ints& counts) {
    return counts.size() == 2 && counts[0] >= 1 && counts[1] >= 1;
  };
  if (plan.m < 1 || plan.n < 1 || plan.k < 1 || !is_pair(plan.tiles) || !is_pair(plan.groups))
    return {concat("the matrix plan has tiles of ", plan.m, " x ", plan.n, " x ", plan.k, ", ",
                   text::to_text(plan.tiles), " of a group, and ", text::to_text(plan.groups),
                   " groups")};
  std::vector<std::string> violations;
  if (plan.depth < 0 || plan.depth % plan.k != 0 || plan.copies < 1 || plan.copies > 2 ||
      (plan.copies > 1 && plan.depth == 0))
    violations.push_back(concat("the matrix plan has ", plan.copies, " copies of panels of depth ",
                                plan.depth, ", not 1 or 2 of a multiple of ", plan.k));
  const int64_t threads = kernel.iter.mapping.threads, groups = plan.groups[0] * plan.groups[1];
  if (threads % groups != 0)
    violations.push_back(
        concat("the matrix plan divides ", threads, " threads into ", groups, " SIMD-groups"));
  return violations;
}

}  // namespace rune::schedule
