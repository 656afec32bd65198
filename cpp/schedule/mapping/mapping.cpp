#include "schedule/mapping/mapping.h"

#include <algorithm>

#include "base/error.h"
#include "schedule/analysis/analysis.h"
#include "schedule/mapping/mapping_state.h"
#include "schedule/mapping/matrix_tiles.h"
#include "schedule/mapping/packing.h"
#include "schedule/mapping/phases.h"
#include "schedule/mapping/prefetch.h"
#include "schedule/mapping/row_values.h"
#include "schedule/mapping/widened_operands.h"

namespace rune::schedule {

MappingState::MappingState(const Graph& graph, const Capabilities& caps, double work_ns,
                           Kernel& kernel, const Kernel* around)
    : graph(graph),
      caps(caps),
      work_ns(work_ns),
      kernel(kernel),
      around(around),
      outer(outer_axes(kernel)),
      contracts(schedule::contracts(graph, kernel)),
      sequential(sequential_stage(kernel)),
      step(kernel.iter.axes.size(), 1),
      block_tile(kernel.iter.axes.size(), 0),
      patch(kernel.iter.axes.size(), 0) {}

bool MappingState::is_outer(int64_t axis) const {
  return contains(outer, axis);
}

bool MappingState::is_shared(int64_t axis) const {
  return around && axis < static_cast<int64_t>(around->iter.axes.size());
}

void MappingState::unroll(int64_t axis, int64_t factor) {
  if (is_shared(axis))
    while (around->iter.tiles[axis].back() % factor) --factor;
  if (factor <= 1) return;
  step[axis] *= factor;
}

void MappingState::vectorize(int64_t axis, int64_t lanes) {
  if (lanes <= 1) return;
  kernel.iter.mapping.vec.push_back(axis);
  kernel.iter.mapping.lanes = lanes;
  step[axis] *= lanes;
}

bool combines_by_shuffles(const Graph& graph, const Kernel& kernel, const Capabilities& caps) {
  const int64_t threads = kernel.iter.mapping.team_threads(), width = caps.simd_width;
  if (threads <= 1 || threads % width || threads / width > width) return false;
  for (const Stage& stage : kernel.stages())
    for (const StageValue& value : stage.values) {
      if (stage.kind != StageKind::Reduce) continue;
      const AluOp op = alu_of(reduction_op(graph[value.value]));
      const auto& simd_ops = caps.simd_ops[static_cast<size_t>(graph[value.value].dtype())];
      if (!simd_ops[static_cast<size_t>(op)]) return false;
    }
  return true;
}

namespace {

// The number of terms that one accumulator adds one by one.
constexpr int64_t kBlockSteps = 64;

// A long sum of floats restarts every kBlockSteps iterations, so that its error stays below that
// of pairwise summation (Higham 1993).
void block_long_sums(MappingState& s) {
  for (const Stage& stage : s.kernel.stages()) {
    if (stage.kind != StageKind::Reduce || stage.axes.empty()) continue;
    const bool sums =
        std::any_of(stage.values.begin(), stage.values.end(), [&](const StageValue& value) {
          const auto* reduce = s.graph[value.value].as<graph::Reduce_Axis>();
          return reduce && reduce->op == ReduceOp::Add && is_float(s.graph[value.value].dtype());
        });
    for (const int64_t axis : stage.axes)
      if (sums && s.extent(axis) > kBlockSteps * s.step[axis])
        s.block_tile[axis] = kBlockSteps * s.step[axis];
  }
}

// Sets the tiles of each axis: the shared one, the workgroup's or block's, and the innermost
// loop's.
void set_tiles(MappingState& s) {
  for (size_t i = 0; i < s.kernel.iter.axes.size(); ++i) {
    const bool shared = s.is_shared(static_cast<int64_t>(i));
    Ints tiles;
    if (shared) tiles = s.around->iter.tiles[i];
    if (s.block_tile[i]) tiles.push_back(s.block_tile[i]);
    if (s.patch[i]) tiles.push_back(s.patch[i]);
    const bool at_point = shared && !tiles.empty() && tiles.back() == 1;
    if (!at_point) tiles.push_back(s.step[i]);
    s.kernel.iter.tiles.push_back(std::move(tiles));
  }
}

// Decides how threads that share a reduction combine their partial results.
void plan_combination(MappingState& s) {
  const Ints& thread = s.kernel.iter.mapping.thread;
  const Ints reduced = reduced_axes(s.kernel);
  const bool across_threads = std::any_of(reduced.begin(), reduced.end(),
                                          [&](int64_t axis) { return contains(thread, axis); });
  const bool scatters = s.sequential && s.sequential->kind == StageKind::Scatter;
  const bool atomic = (scatters && across_threads) || reduced_axis_of_groups(s);
  if (!across_threads && !atomic) return;
  Combination combination;
  combination.atomic = atomic;
  if (s.sequential && !scatters)
    combination.threads = ThreadCombination::Shuffles;
  else if (across_threads && !scatters)
    combination.threads = combines_by_shuffles(s.graph, s.kernel, s.caps)
                              ? ThreadCombination::Shuffles
                              : ThreadCombination::SharedTree;
  std::get<Staged>(s.kernel.body).combine = combination;
}

void check_grid(const MappingState& s) {
  if (s.kernel.workgroups() > s.caps.max_grid)
    user_error(ErrorKind::Unsupported, s.kernel.name, ": cannot launch ", s.kernel.workgroups(),
               " workgroups (the device allows ", s.caps.max_grid, ")");
}

bool map_stages(MappingState s) {
  const bool on_cores = s.caps.model == ExecutionModel::Cores;
  if (s.contracts && on_cores) {
    const bool packed = map_packed_contraction(s.graph, s.caps, s.kernel, s.around);
    if (packed || (s.around && !contracts_unpacked(s.kernel))) return packed;
  }
  if (s.contracts && map_matrix_contraction(s.graph, s.caps, s.kernel)) return true;
  if (on_cores) {
    map_to_cores(s);
  } else {
    map_to_grid(s);
  }
  block_long_sums(s);
  set_tiles(s);
  check_grid(s);
  plan_combination(s);
  if (on_cores) keep_row_values(s.graph, s.caps, s.kernel);
  if (on_cores && s.contracts) keep_widened_operands(s.graph, s.caps, s.kernel, s.around);
  plan_prefetches(s.graph, s.caps, s.kernel);
  return true;
}

}  // namespace

bool is_contraction(const Graph& graph, const Kernel& kernel) {
  const std::vector<Stage>& stages = kernel.stages();
  if (stages.empty() || stages[0].kind != StageKind::Reduce || stages[0].values.size() != 1 ||
      stages[0].axes.size() != 1)
    return false;
  for (size_t s = 1; s < stages.size(); ++s)
    if (stages[s].kind != StageKind::Map || !stages[s].axes.empty()) return false;
  for (const Axis& axis : kernel.iter.axes)
    if (axis.is_symbolic()) return false;
  return graph[stages[0].values[0].value].kind() == graph::NodeKind::Contract;
}

bool computes_squares(const Kernel& kernel) {
  const int64_t lanes = kernel.lanes();
  if (lanes == 1) return false;
  if (kernel.stages().front().depth) return true;
  if (kernel.stages().size() != 1 || !kernel.stages().front().axes.empty()) return false;
  const Ints& vec = kernel.iter.mapping.vec;
  const Ints axes = outer_axes(kernel);
  return std::any_of(axes.begin(), axes.end(), [&](int64_t axis) {
    return kernel.iter.unroll(axis) == lanes && !contains(vec, axis);
  });
}

void map_axes(const Graph& graph, const Capabilities& caps, double work_ns, Kernel& kernel) {
  if (kernel.phases().empty()) {
    map_stages({graph, caps, work_ns, kernel, nullptr});
  } else {
    RUNE_CHECK(map_phases(graph, caps, kernel), kernel.name, " does not fit the caches");
  }
}

bool map_phase(const Graph& graph, const Capabilities& caps, const Kernel& around, Kernel& phase) {
  return map_stages({graph, caps, 0, phase, &around});
}

Schedule map_to_machine(Schedule schedule, const Capabilities& caps) {
  std::vector<bool> is_mapped(schedule.kernels.size(), false);
  for (size_t i = 0; i < schedule.items.size(); ++i) {
    const Launch* launch = schedule.items[i].launch();
    if (!launch || is_mapped[launch->kernel]) continue;
    is_mapped[launch->kernel] = true;
    map_axes(schedule.graph, caps, static_cast<double>(schedule.analysis[i].work_ns),
             schedule.kernels[launch->kernel]);
  }
  return analyze_items(std::move(schedule), caps);
}

}  // namespace rune::schedule
