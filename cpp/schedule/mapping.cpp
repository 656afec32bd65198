#include "schedule/mapping.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <optional>

#include "base/error.h"
#include "base/math.h"
#include "schedule/cost.h"
#include "schedule/grid_reduction.h"
#include "schedule/matrix_tiles.h"
#include "schedule/packing.h"
#include "schedule/phases.h"
#include "schedule/point_cost.h"
#include "schedule/prefetch.h"
#include "schedule/row_values.h"
#include "schedule/single_pass.h"
#include "schedule/vector_axis.h"

namespace rune::schedule {

namespace {

// Most tasks of the pool for each core: enough to even out, few enough to be free.
constexpr int64_t kTasksPerCore = 8;
// Groups of threads.
constexpr int64_t kGroupThreads = 256;
constexpr int64_t kGroupReduceElements = 64;  // shorter reductions stay within a thread
constexpr int64_t kContractGroupOutputs =
    1024;  // with fewer results a contraction is spread over threads
// Terms that one accumulator adds one by one.
constexpr int64_t kBlockSteps = 64;
// Sides of the square tiles in which arrays are transposed: 64 rows of 256 bytes fit the caches.
constexpr int64_t kTransposeTile = 64;
// Of squares that are transposed in registers, and of their points: more code is not worth
// compiling.
constexpr int64_t kMostSquareRows = 16;
constexpr double kMostSquareOperations = 25;
// Outputs that fill the last level of cache bypass it; what a core has of a cache shared by many is
// at most so much.
constexpr int64_t kLeastNontemporalBytes = 16 << 20, kMostNontemporalBytes = 32 << 20;

class Mapper {
 public:
  Mapper(const Graph& graph, const Capabilities& caps, double work_ns, Kernel& kernel,
         const Kernel* around = nullptr)
      : graph_(graph),
        caps_(caps),
        work_ns_(work_ns),
        kernel_(kernel),
        around_(around),
        vector_axis_(graph, caps, kernel, around),
        outer_(outer_axes(kernel)),
        contracts_(contracts(graph, kernel)),
        sequential_(sequential_stage(kernel)) {
    step_.assign(kernel.iter.axes.size(), 1);
    block_tile_.assign(kernel.iter.axes.size(), 0);
  }

  bool run() {
    if (contracts_ && caps_.model == ExecutionModel::Cores) {
      const bool packed = map_packed_contraction(graph_, caps_, kernel_, around_);
      if (packed || (around_ && !contracts_unpacked(kernel_))) return packed;
    }
    if (contracts_ && map_matrix_contraction(graph_, caps_, kernel_)) return true;
    if (caps_.model == ExecutionModel::Cores) {
      map_to_cores();
    } else {
      map_to_grid();
    }
    block_long_sums();
    IterSpace& iter = kernel_.iter;
    for (size_t i = 0; i < iter.axes.size(); ++i) {
      Ints tiles;
      if (is_shared(static_cast<int64_t>(i))) tiles = around_->iter.tiles[i];
      if (block_tile_[i]) tiles.push_back(block_tile_[i]);
      const bool at_point =
          !tiles.empty() && is_shared(static_cast<int64_t>(i)) && tiles.back() == 1;
      if (!at_point) tiles.push_back(step_[i]);
      iter.tiles.push_back(std::move(tiles));
    }
    plan_reduction();
    if (caps_.model == ExecutionModel::Cores) keep_row_values(graph_, caps_, kernel_);
    plan_prefetches(graph_, caps_, kernel_);
    if (kernel_.context.device.empty()) kernel_.context.device = caps_.name;
    kernel_.context.upcasted = points_at_once();
    return true;
  }

 private:
  // Stages run one after the other.
  int64_t points_at_once() const {
    const auto copies = [&](const Ints& axes) {
      int64_t product = 1;
      for (const int64_t axis : axes) product *= kernel_.unroll(axis);
      return product;
    };
    int64_t most = 1;
    for (const Stage& stage : kernel_.stages) most = std::max(most, copies(stage.axes));
    return copies(outer_axes(kernel_)) * most;
  }

  int64_t extent(int64_t axis) const { return kernel_.iter.axes[axis].extent(); }

  // Whether the kernel is a phase and this one of the axes that all phases have.
  bool is_shared(int64_t axis) const {
    return around_ && axis < static_cast<int64_t>(around_->iter.axes.size());
  }

  int64_t outer_points() const {
    int64_t points = 1;
    for (const int64_t axis : outer_) points *= extent(axis);
    return points;
  }

  bool has_inner_axes() const { return outer_.size() < kernel_.iter.axes.size(); }

  void unroll(int64_t axis, int64_t factor) {
    // Steps divide the tiles that all phases have.
    if (is_shared(axis))
      while (around_->iter.tiles[axis].back() % factor) --factor;
    if (factor <= 1) return;
    kernel_.hints.push_back({HintKind::Unroll, axis, std::nullopt, factor});
    step_[axis] *= factor;
  }

  void vectorize(int64_t axis, int64_t lanes) {
    if (lanes <= 1) return;
    kernel_.iter.mapping.vec.push_back(axis);
    kernel_.hints.push_back({HintKind::Vectorize, axis, std::nullopt, lanes});
    step_[axis] *= lanes;
  }

  // Cores.

  // Computes all points of such axes at once; returns how many that are.
  int64_t unroll_filling_axes(const Ints& vec) {
    int64_t points = 1;
    for (const MemoryAccess& access : vector_axis_.accesses()) {
      if (vec.size() != 1) break;
      const std::optional<int64_t> axis = vector_axis_.filling_axis(access, vec.front());
      if (!axis || step_[*axis] > 1) continue;
      unroll(*axis, extent(*axis));
      points *= extent(*axis);
    }
    return points;
  }

  // Largest factor not above `most` that the axis can fill.
  int64_t fitting(int64_t axis, int64_t most) const {
    return std::max<int64_t>(1, std::min(most, extent(axis) / step_[axis]));
  }

  // Of the factors not above `most`, one that cuts the axis into the fewest pieces, all alike.
  int64_t evenly(int64_t axis, int64_t most) const {
    const int64_t steps = std::max<int64_t>(1, extent(axis) / step_[axis]);
    return ceil_div(steps, ceil_div(steps, most));
  }

  bool is_outer(int64_t axis) const {
    return std::find(outer_.begin(), outer_.end(), axis) != outer_.end();
  }

  void map_to_cores() {
    const Ints vec = vector_axis_.choose();
    for (const int64_t axis : vec) vectorize(axis, vector_axis_.lanes());
    const std::optional<int64_t> transposed = transposed_axis(vec);
    if (transposed) {
      if (reads_squares(vec.front(), *transposed)) unroll(*transposed, vector_axis_.lanes());
      tile_transpose({vec.front(), *transposed});
    } else if (contracts_) {
      tile_contraction(vec);
    } else {
      unroll_for_cores(vec);
    }
    Ints& serial = kernel_.iter.mapping.serial;
    if (around_) {
      kernel_.iter.mapping.block = around_->iter.mapping.block;
      kernel_.context.global_dims = around_->context.global_dims;
      serial = around_->iter.mapping.serial;
    } else if (!transposed) {
      spread_over_cores();
    }
    for (const int64_t axis : outer_) {
      const bool done = is_shared(axis) && around_->iter.tiles[axis].back() == 1;
      if (!done && std::find(vec.begin(), vec.end(), axis) == vec.end()) serial.push_back(axis);
    }
    for (const int64_t axis : vec)
      if (is_outer(axis)) serial.push_back(axis);
    // The lines that one vector gathers from serve the next rows, too.
    if (transposed) {
      serial.erase(std::find(serial.begin(), serial.end(), *transposed));
      serial.push_back(*transposed);
    }
    if (contracts_ && serial.size() >= 2 && !vec.empty() && is_outer(vec.front()) &&
        !fits_cache(vec.front()))
      std::swap(serial[serial.size() - 1], serial[serial.size() - 2]);
    for (const Stage& stage : kernel_.stages)
      serial.insert(serial.end(), stage.axes.begin(), stage.axes.end());
    const int64_t most_cached =
        std::clamp(caps_.last_level_bytes, kLeastNontemporalBytes, kMostNontemporalBytes);
    for (const BufferInfo& buffer : kernel_.outputs)
      if (caps_.has_nontemporal_stores && buffer.alloc.size_bytes >= most_cached)
        kernel_.hints.push_back({HintKind::Nontemporal, std::nullopt, buffer.buf_var, 1});
  }

  // Whether a core's cache holds what a contraction reads along the lanes' axis. If so, whole rows
  // of the result are written one after the other; else the rows of the other operand stream past a
  // strip of this one.
  bool fits_cache(int64_t lanes_axis) const {
    const Stage& sums = kernel_.stages.front();
    int64_t bytes = extent(lanes_axis) * size_of(graph_[sums.values.front().value].dtype());
    for (const int64_t axis : sums.axes) bytes *= extent(axis);
    return bytes <= caps_.l2_bytes / 2;
  }

  // Independent accumulators hide the latency of a reduction's operations; elsewhere, iterations
  // are independent anyway, and copies only make that visible to a core's instruction window.
  int64_t unroll_factor(const Stage& stage) const {
    const PointCost cost = point_cost(graph_, kernel_, stage, caps_, vector_axis_.lanes());
    if (stage.kind == StageKind::Reduce)
      return cost.operations <= 8 ? 8 : cost.operations <= 40 ? 4 : 2;
    return interleaved_copies(cost, caps_);
  }

  void unroll_for_cores(const Ints& vec) {
    if (sequential_) unroll_sequential(vec);
    const int64_t points = unroll_filling_axes(vec);
    for (const int64_t axis : vec) {
      if (sequential_ || !is_outer(axis)) continue;
      int64_t copies = unroll_factor(kernel_.stages.front()) / points;
      if (const std::optional<Block> block = points == 1 ? jammed_rows(axis) : std::nullopt) {
        unroll(block->axis, block->count);
        copies /= block->count;
      }
      unroll(axis, fitting(axis, copies));
    }
    for (const Stage& stage : kernel_.stages)
      for (const int64_t axis : stage.axes) {
        if (std::find(vec.begin(), vec.end(), axis) == vec.end()) continue;
        unroll(axis, fitting(axis, stage.kind == StageKind::Reduce ? unroll_factor(stage) : 2));
      }
    if (!vec.empty()) return;
    for (const Stage& stage : kernel_.stages)
      if (stage.kind == StageKind::Reduce && !stage.axes.empty())
        unroll(stage.axes.back(), fitting(stage.axes.back(), 4));
  }

  // Of a kernel of one loop nest, neighbouring rows of vectors that share loads, as a stencil's do.
  std::optional<Block> jammed_rows(int64_t lanes_axis) const {
    if (around_ || has_inner_axes() || kernel_.stages.size() > 1) return std::nullopt;
    Ints axes = outer_;
    std::erase(axes, lanes_axis);
    return jammed_block(graph_, kernel_, kernel_.stages.front(), caps_, vector_axis_.lanes(), axes);
  }

  // Several outer points at once, so that their chains of operations overlap. Updates of single
  // elements seldom wait for each other, and those of several points would need more cache.
  void unroll_sequential(const Ints& vec) {
    const bool lanes_outside = !vec.empty() && is_outer(vec.front());
    if (sequential_->kind == StageKind::Scatter && !lanes_outside) {
      const int64_t updates = sequential_->axes.front();
      return unroll(updates, fitting(updates, 4));
    }
    if (outer_.empty()) return;
    const int64_t axis = lanes_outside ? vec.front() : outer_.back();
    unroll(axis, fitting(axis, unroll_factor(*sequential_)));
  }

  // Register tiles: as many accumulators as registers allow, so that each loaded vector is used
  // often. Of a product with one vector, whose matrix is read once, so that its rows are read in
  // long runs.
  void tile_contraction(const Ints& vec) {
    const bool along_output = !vec.empty() && is_outer(vec.front());
    const int64_t registers = caps_.num_vector_registers;
    Ints rows;  // outer axes without lanes, longest last
    for (const int64_t axis : outer_)
      if (vec.empty() || axis != vec.front()) rows.push_back(axis);
    std::sort(rows.begin(), rows.end(),
              [&](int64_t a, int64_t b) { return extent(a) < extent(b); });
    if (along_output) {
      const bool one_row = rows.empty() || extent(rows.back()) == 1;
      unroll(vec.front(), one_row ? evenly(vec.front(), registers - 8) : fitting(vec.front(), 2));
      if (!rows.empty()) unroll(rows.back(), fitting(rows.back(), most_tile_rows(caps_)));
      return;
    }
    // Lanes along the contracted axis: a tile of dot products.
    int64_t budget = registers / 2;
    for (size_t i = rows.size(); i-- > 0 && budget > 1;) {
      const int64_t factor = fitting(rows[i], std::min<int64_t>(4, budget));
      unroll(rows[i], factor);
      budget /= factor;
    }
  }

  // The outer axis along which some array is contiguous that the lanes, on another axis, read with
  // a stride; nothing if there is none, or few enough to stay in cache.
  std::optional<int64_t> transposed_axis(const Ints& vec) const {
    if (around_ || has_inner_axes() || vec.empty() || extent(vec.front()) <= kTransposeTile)
      return std::nullopt;
    for (const MemoryAccess& access : vector_axis_.accesses()) {
      const auto stride = access.position.coefficient_of(static_cast<uint32_t>(vec.front()));
      if (!stride || std::abs(*stride) <= 1) continue;
      for (const int64_t axis : outer_)
        if (access.position.coefficient_of(static_cast<uint32_t>(axis)) == 1 &&
            extent(axis) > kTransposeTile)
          return axis;
    }
    return std::nullopt;
  }

  // Whether what the lanes read far apart, along an axis on which it is contiguous, consists of
  // aligned squares of as many rows as a vector has lanes. These are transposed in registers.
  bool reads_squares(int64_t lanes_axis, int64_t transposed) const {
    const int64_t lanes = vector_axis_.lanes();
    if (lanes < 4 || lanes > kMostSquareRows || kernel_.stages.size() > 1) return false;
    const PointCost cost = point_cost(graph_, kernel_, kernel_.stages.front(), caps_, lanes);
    if (cost.operations > kMostSquareOperations) return false;
    const auto& accesses = vector_axis_.accesses();
    return std::any_of(accesses.begin(), accesses.end(), [&](const MemoryAccess& access) {
      const auto along = access.position.coefficient_of(static_cast<uint32_t>(lanes_axis));
      const auto across = access.position.coefficient_of(static_cast<uint32_t>(transposed));
      return !access.is_store && access.mask.is_true() && along && std::abs(*along) > 1 &&
             *along % lanes == 0 && across == 1;
    });
  }

  // Workgroups are tiles over both axes of a transpose, so that all of a loaded cache line is used
  // before it is evicted.
  void tile_transpose(const Ints& tiled) {
    int64_t total = 1;
    for (const int64_t axis : outer_) {
      const bool in_tile = std::find(tiled.begin(), tiled.end(), axis) != tiled.end();
      const int64_t whole = round_up(extent(axis), step_[axis]);
      block_tile_[axis] =
          in_tile ? std::min(whole, round_up(kTransposeTile, step_[axis])) : step_[axis];
      kernel_.iter.mapping.block.push_back(axis);
      total *= ceil_div(extent(axis), block_tile_[axis]);
    }
    kernel_.context.global_dims[0] = total;
  }

  void spread_over_cores() {
    int64_t tasks = 1;
    if (is_worth_sharing(caps_, work_ns_)) {
      // Powers of two for each core divide usual sizes.
      const double worthwhile = work_ns_ / std::max(1.0, caps_.parallel_ns) / caps_.num_cores;
      tasks = caps_.num_cores;
      while (tasks < kTasksPerCore * caps_.num_cores && 2 * tasks <= worthwhile * caps_.num_cores)
        tasks *= 2;
    }
    int64_t total = 1;
    for (const int64_t axis : outer_) {
      if (tasks <= 1) break;
      const int64_t steps = ceil_div(extent(axis), step_[axis]);
      const int64_t pieces = std::min(steps, tasks);
      block_tile_[axis] = ceil_div(steps, pieces) * step_[axis];
      kernel_.iter.mapping.block.push_back(axis);
      total *= ceil_div(extent(axis), block_tile_[axis]);
      tasks = ceil_div(tasks, pieces);
    }
    kernel_.context.global_dims[0] = total;
  }

  // Grid.

  int64_t longest_reduction() const {
    int64_t longest = 0;
    for (const Stage& stage : kernel_.stages) {
      if (stage.kind != StageKind::Reduce) continue;
      int64_t size = 1;
      for (const int64_t axis : stage.axes) size *= extent(axis);
      longest = std::max(longest, size);
    }
    return longest;
  }

  int64_t group_threads(int64_t work) const {
    int64_t threads = caps_.simd_width;
    const int64_t most = std::min<int64_t>(kGroupThreads, caps_.max_threads_per_group);
    while (threads < most && threads < work) threads *= 2;
    while (threads > most) threads /= 2;
    return threads;
  }

  // One group a point, its threads along the stages' innermost axes; or one thread a point, or an
  // update of one.
  void map_to_grid() {
    Mapping& mapping = kernel_.iter.mapping;
    const bool by_group = has_inner_axes() && longest_reduction() >= kGroupReduceElements &&
                          (!contracts_ || outer_points() < kContractGroupOutputs);
    if (updates_atomically()) {
      deal_to_threads(all_axes());
    } else if (by_group) {
      mapping.block = outer_;
      if (const auto shared = shared_reduced_axis()) mapping.block.push_back(*shared);
      int64_t groups = 1;
      for (const int64_t axis : mapping.block) groups *= extent(axis), block_tile_[axis] = 1;
      int64_t threads = 1;
      for (const Stage& stage : kernel_.stages) {
        Ints axes = stage.axes;
        std::erase_if(axes, [&](int64_t axis) { return block_tile_[axis] > 0; });
        if (axes.empty()) continue;
        threads = std::max(threads, group_threads(extent(axes.back())));
        mapping.thread.push_back(axes.back());
        mapping.serial.insert(mapping.serial.end(), axes.begin(), axes.end() - 1);
      }
      kernel_.context.local_dims[0] = threads;
      kernel_.context.global_dims[0] = groups;
    } else {
      deal_to_threads(outer_);
      for (const Stage& stage : kernel_.stages)
        mapping.serial.insert(mapping.serial.end(), stage.axes.begin(), stage.axes.end());
    }
    check_grid();
  }

  // A thread for each point of these axes.
  void deal_to_threads(const Ints& axes) {
    kernel_.iter.mapping.block = kernel_.iter.mapping.thread = axes;
    int64_t points = 1;
    for (const int64_t axis : axes) points *= extent(axis), block_tile_[axis] = 1;
    // A single point has no axis that threads could share.
    const int64_t threads = axes.empty() ? 1 : group_threads(points);
    kernel_.context.local_dims[0] = threads;
    kernel_.context.global_dims[0] = ceil_div(points, threads);
  }

  // The reduced axis that workgroups share, where they combine by atomic operations.
  std::optional<int64_t> shared_reduced_axis() const {
    for (const Stage& stage : kernel_.stages) {
      if (stage.kind != StageKind::Reduce || !begins_earlier(kernel_, stage.values[0].value))
        continue;
      Shape sizes;
      for (const int64_t axis : stage.axes) sizes.push_back(extent(axis));
      if (const auto i = axis_of_groups(sizes, caps_)) return stage.axes[*i];
    }
    return std::nullopt;
  }

  // Whether a Scatter's updates are combined by atomic operations.
  bool updates_atomically() const {
    if (!sequential_ || sequential_->kind != StageKind::Scatter) return false;
    const graph::Node& node = graph_[sequential_->values.front().value];
    return schedule::updates_atomically(*node.as<graph::Scatter>(), node.dtype(), caps_);
  }

  // Updates around the elements of each, which neighbouring threads write to neighbouring places.
  Ints all_axes() const {
    Ints axes = sequential_->axes;
    axes.insert(axes.end(), outer_.begin(), outer_.end());
    return axes;
  }

  void check_grid() const {
    if (kernel_.context.global_dims[0] > caps_.max_grid)
      user_error(ErrorKind::Unsupported, kernel_.kernel_name, ": cannot launch ",
                 kernel_.context.global_dims[0], " workgroups (the device allows ", caps_.max_grid,
                 ")");
  }

  // A long sum of floats restarts every kBlockSteps iterations, so that its error stays below that
  // of pairwise summation (Higham 1993).
  void block_long_sums() {
    for (const Stage& stage : kernel_.stages) {
      if (stage.kind != StageKind::Reduce || stage.axes.empty()) continue;
      const bool sums =
          std::any_of(stage.values.begin(), stage.values.end(), [&](const StageValue& value) {
            const auto* reduce = graph_[value.value].as<graph::Reduce_Axis>();
            return reduce && reduce->op == ReduceOp::Add && is_float(graph_[value.value].dtype());
          });
      for (const int64_t axis : stage.axes)
        if (sums && extent(axis) > kBlockSteps * step_[axis])
          block_tile_[axis] = kBlockSteps * step_[axis];
    }
  }

  void plan_reduction() {
    ReductionPlan plan;
    bool several = false;
    for (const Stage& stage : kernel_.stages) {
      if (stage.kind == StageKind::Map) continue;
      plan.axes.insert(plan.axes.end(), stage.axes.begin(), stage.axes.end());
      for (const int64_t axis : stage.axes)
        several |= stage.kind == StageKind::Reduce && step_[axis] > 1;
    }
    if (plan.axes.empty()) return;
    const Ints& thread = kernel_.iter.mapping.thread;
    const bool across_threads = std::any_of(plan.axes.begin(), plan.axes.end(), [&](int64_t axis) {
      return std::find(thread.begin(), thread.end(), axis) != thread.end();
    });
    const bool shuffles =
        across_threads && !sequential_ && combines_by_shuffles(graph_, kernel_, caps_);
    plan.intra_thread = reduces_moments(graph_, kernel_) ? IntraThread::Welford
                        : shuffles                       ? IntraThread::Shfl
                        : several                        ? IntraThread::Tree
                                                         : IntraThread::None;
    plan.inter_thread = sequential_ && across_threads ? InterThread::Atomic
                        : shared_reduced_axis()       ? InterThread::Atomic
                        : across_threads              ? InterThread::SharedTree
                                                      : InterThread::None;
    kernel_.reduce = std::move(plan);
  }

  const Graph& graph_;
  const Capabilities& caps_;
  const double work_ns_;
  Kernel& kernel_;
  const Kernel* const around_;
  const VectorAxis vector_axis_;
  const Ints outer_;
  const bool contracts_;
  const Stage* const sequential_;
  Ints step_;        // by axis: points that one iteration of its innermost loop covers
  Ints block_tile_;  // by axis: points that one workgroup covers, 0 if not a block axis
};

}  // namespace

bool combines_by_shuffles(const Graph& graph, const Kernel& kernel, const Capabilities& caps) {
  const int64_t threads = kernel.context.local_dims[0], width = caps.simd_width;
  if (threads <= 1 || threads % width || threads / width > width) return false;
  for (const Stage& stage : kernel.stages)
    for (const StageValue& value : stage.values) {
      if (stage.kind != StageKind::Reduce) continue;
      const AluOp op = alu_of(reduction_op(graph[value.value]));
      const auto& simd_ops = caps.simd_ops[static_cast<size_t>(graph[value.value].dtype())];
      if (!simd_ops[static_cast<size_t>(op)]) return false;
    }
  return true;
}

bool updates_atomically(const graph::Scatter& scatter, DType dtype, const Capabilities& caps) {
  const std::optional<ReduceOp> op = graph::reduce_op(scatter.mode);
  return caps.model == ExecutionModel::Grid && op &&
         caps.atomic_ops[static_cast<size_t>(dtype)][static_cast<size_t>(alu_of(*op))];
}

bool computes_squares(const Kernel& kernel) {
  const int64_t lanes = kernel.lanes();
  if (lanes == 1 || kernel.stages.size() != 1 || !kernel.stages.front().axes.empty()) return false;
  const Ints& vec = kernel.iter.mapping.vec;
  const Ints axes = outer_axes(kernel);
  return std::any_of(axes.begin(), axes.end(), [&](int64_t axis) {
    return kernel.unroll(axis) == lanes && std::find(vec.begin(), vec.end(), axis) == vec.end();
  });
}

void map_axes(const Graph& graph, const Capabilities& caps, double work_ns, Kernel& kernel) {
  if (kernel.phases.empty()) {
    Mapper(graph, caps, work_ns, kernel).run();
  } else {
    RUNE_CHECK(map_phases(graph, caps, kernel), kernel.kernel_name, " does not fit the caches");
  }
}

bool map_phase(const Graph& graph, const Capabilities& caps, const Kernel& around, Kernel& phase) {
  return Mapper(graph, caps, 0, phase, &around).run();
}

}  // namespace rune::schedule
