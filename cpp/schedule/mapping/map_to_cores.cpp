#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <optional>

#include "base/math.h"
#include "schedule/analysis/cost.h"
#include "schedule/mapping/mapping_state.h"
#include "schedule/mapping/packing.h"
#include "schedule/mapping/point_cost.h"
#include "schedule/mapping/vector_axis.h"

namespace rune::schedule {

namespace {

// The most tasks of the pool for each core: enough to balance the work, and so few that they cost
// nothing.
constexpr int64_t kTasksPerCore = 8;
// The sides of the square tiles in which arrays are transposed. The rows are so few that their
// lines and pages stay in the first caches, and they consist of whole lines. kTransposeTile is the
// side for elements of at least four bytes, kCachedSide for smaller ones. Tiles whose stores bypass
// the cache leave it to the loads, so that rows of kStreamedRowBytes fit. Arrays with sides of at
// most kCachedSide stay in the cache, so they are tiled only if squares are transposed in
// registers. Arrays of at most kFewPoints elements are not tiled.
constexpr int64_t kTransposeTile = 32, kCachedSide = 64, kStreamedRowBytes = 256;
constexpr int64_t kFewPoints = 1024;
// The most operations per point of squares that are transposed in registers. More code is not worth
// compiling.
constexpr double kMostSquareOperations = 25;
// The number of rows of a matrix that are read at the same time (prefetchers can follow as many),
// and the vectors of each. kLongRowBytes is the least size of such a row.
constexpr int64_t kCarriedRows = 8, kCarriedVectors = 4;
constexpr int64_t kLongRowBytes = 4096;
// Outputs that fill the last level of cache bypass it. These bound the size from which they do.
constexpr int64_t kLeastNontemporalBytes = 16 << 20, kMostNontemporalBytes = 32 << 20;

class CoreMapper {
 public:
  explicit CoreMapper(MappingState& state)
      : s_(state), vector_axis_(state.graph, state.caps, state.kernel, state.around) {}

  void run() {
    const Ints vec = vector_axis_.choose();
    vector_axis_.fit_lanes(vec);
    for (const int64_t axis : vec) s_.vectorize(axis, vector_axis_.lanes());
    const std::optional<int64_t> transposed = transposed_axis(vec);
    if (transposed) {
      if (reads_squares(vec.front(), *transposed)) s_.unroll(*transposed, vector_axis_.lanes());
      tile_transpose({vec.front(), *transposed});
    } else if (s_.contracts) {
      tile_contraction(vec);
    } else {
      unroll_for_cores(vec);
    }
    Ints& serial = s_.kernel.iter.mapping.serial;
    if (s_.around) {
      s_.kernel.iter.mapping.block = s_.around->iter.mapping.block;
      serial = s_.around->iter.mapping.serial;
    } else if (!transposed) {
      spread_over_cores();
    }
    for (const int64_t axis : s_.outer) {
      const bool done = s_.is_shared(axis) && s_.around->iter.tiles[axis].back() == 1;
      if (!done && !contains(vec, axis)) serial.push_back(axis);
    }
    for (const int64_t axis : vec)
      if (s_.is_outer(axis)) serial.push_back(axis);
    // The cache lines that one vector gathers from also serve the next rows.
    if (transposed) {
      serial.erase(std::find(serial.begin(), serial.end(), *transposed));
      serial.push_back(*transposed);
    }
    if (s_.contracts && serial.size() >= 2 && !vec.empty() && s_.is_outer(vec.front()) &&
        shares_vectors(vec.front(), serial[serial.size() - 2]) && !fits_cache(vec.front()))
      std::swap(serial[serial.size() - 1], serial[serial.size() - 2]);
    for (const Stage& stage : s_.kernel.stages())
      serial.insert(serial.end(), stage.axes.begin(), stage.axes.end());
    if (carried_) {
      serial.insert(serial.begin(), *carried_);
      s_.block_tile[*carried_] = kCarriedRows;
    }
    std::copy_if(s_.kernel.outputs.begin(), s_.kernel.outputs.end(),
                 std::back_inserter(s_.kernel.nontemporal),
                 [&](Value v) { return bypasses_cache(v); });
  }

 private:
  bool bypasses_cache(Value output) const {
    const int64_t most_cached =
        std::clamp(s_.caps.last_level_bytes, kLeastNontemporalBytes, kMostNontemporalBytes);
    return s_.caps.has_nontemporal_stores && bytes_of(s_.graph[output]) >= most_cached;
  }

  // Unrolls axes that fill the gaps between the lanes. Returns the number of points that are then
  // computed together.
  int64_t unroll_filling_axes(const Ints& vec) {
    int64_t points = 1;
    for (const MemoryAccess& access : vector_axis_.accesses()) {
      if (vec.size() != 1) break;
      const std::optional<int64_t> axis = vector_axis_.filling_axis(access, vec.front());
      if (!axis || s_.step[*axis] > 1) continue;
      s_.unroll(*axis, s_.extent(*axis));
      points *= s_.extent(*axis);
    }
    return points;
  }

  // The largest factor, at most `most`, that the axis can fill.
  int64_t fitting(int64_t axis, int64_t most) const {
    return std::max<int64_t>(1, std::min(most, s_.extent(axis) / s_.step[axis]));
  }

  // A factor, at most `most`, that divides the axis into the fewest pieces of nearly equal size.
  int64_t evenly(int64_t axis, int64_t most) const {
    const int64_t steps = std::max<int64_t>(1, s_.extent(axis) / s_.step[axis]);
    return ceil_div(steps, ceil_div(steps, std::max<int64_t>(1, most)));
  }

  // Whether a core's cache holds the operand that a contraction reads along the lanes' axis. If so,
  // whole rows of the result are written one after the other. Otherwise the rows of the other
  // operand stream past a strip of this one.
  bool fits_cache(int64_t lanes_axis) const {
    const Stage& sums = s_.kernel.stages().front();
    int64_t bytes = s_.extent(lanes_axis) * size_of(s_.graph[sums.values.front().value].dtype());
    for (const int64_t axis : sums.axes) bytes *= s_.extent(axis);
    return bytes <= s_.caps.l2_bytes / 2;
  }

  // The unroll factor of a stage. For reductions, independent accumulators hide the latency of
  // operations. Other iterations are independent anyway, and copies only make that visible to a
  // core's instruction window.
  int64_t unroll_factor(const Stage& stage) const {
    const PointCost cost = point_cost(s_.graph, s_.kernel, stage, s_.caps, vector_axis_.lanes());
    const int64_t copies = stage.kind != StageKind::Reduce ? interleaved_copies(cost, s_.caps)
                           : cost.operations <= 8          ? 8
                           : cost.operations <= 12         ? 4
                                                           : 2;
    return std::min(copies, vector_axis_.most_copies());
  }

  void unroll_for_cores(const Ints& vec) {
    if (s_.sequential) unroll_sequential(vec);
    const int64_t points = unroll_filling_axes(vec);
    for (const int64_t axis : vec) {
      if (s_.sequential || !s_.is_outer(axis)) continue;
      const int64_t copies = unroll_factor(s_.kernel.stages().front()) / points;
      if (const std::optional<Block> block = points == 1 ? jammed_rows(axis) : std::nullopt) {
        s_.unroll(block->axis, block->count);
        s_.unroll(axis, evenly(axis, std::max(copies / block->count, block->vectors)));
        continue;
      }
      s_.unroll(axis, fitting(axis, copies));
    }
    for (const Stage& stage : s_.kernel.stages())
      for (const int64_t axis : stage.axes) {
        if (!contains(vec, axis)) continue;
        s_.unroll(axis, fitting(axis, stage.kind == StageKind::Reduce ? unroll_factor(stage) : 2));
      }
    if (!vec.empty()) return;
    for (const Stage& stage : s_.kernel.stages())
      if (stage.kind == StageKind::Reduce && !stage.axes.empty())
        s_.unroll(stage.axes.back(), fitting(stage.axes.back(), 4));
  }

  // For a kernel of one loop nest: adjacent rows of vectors that share loads, as in a stencil.
  std::optional<Block> jammed_rows(int64_t lanes_axis) const {
    if (s_.around || s_.has_inner_axes() || s_.kernel.stages().size() > 1) return std::nullopt;
    Ints axes = s_.outer;
    std::erase(axes, lanes_axis);
    return jammed_block(s_.graph, s_.kernel, s_.kernel.stages().front(), s_.caps,
                        vector_axis_.lanes(), axes);
  }

  // Computes several outer points at once, so that their chains of operations overlap. But updates
  // of single elements seldom wait for each other, and those of several points would need more
  // cache.
  void unroll_sequential(const Ints& vec) {
    const bool lanes_outside = !vec.empty() && s_.is_outer(vec.front());
    if (s_.sequential->kind == StageKind::Scatter && !lanes_outside) {
      const int64_t updates = s_.sequential->axes.front();
      return s_.unroll(updates, fitting(updates, 4));
    }
    if (s_.outer.empty()) return;
    const int64_t axis = lanes_outside ? vec.front() : s_.outer.back();
    s_.unroll(axis, fitting(axis, unroll_factor(*s_.sequential)));
  }

  // Whether an operand that the lanes read is the same at all points of another axis. (It is not
  // for an axis of a batch.)
  bool shares_vectors(int64_t lanes_axis, int64_t axis) const {
    const auto& accesses = vector_axis_.accesses();
    return std::any_of(accesses.begin(), accesses.end(), [&](const MemoryAccess& access) {
      return !access.is_store && access.position.depends_on(static_cast<uint32_t>(lanes_axis)) &&
             !access.position.depends_on(static_cast<uint32_t>(axis));
    });
  }

  // The reduced axis, if a vector or a few rows are multiplied by a matrix of long rows that
  // exceeds the cache. Reading strips of the rows would cause cache misses that no prefetcher
  // predicts. Instead, a few rows at a time are read from end to end, and the sums are carried in
  // the output, which stays in cache.
  std::optional<int64_t> carried_axis(int64_t lanes_axis) const {
    const std::vector<Stage>& stages = s_.kernel.stages();
    if (s_.around || s_.outer.size() > 2 || stages.size() != 2 || stages[0].axes.size() != 1 ||
        stages[0].values.size() != 1 || stages[1].values.size() != 1)
      return std::nullopt;
    const int64_t reduced = stages[0].axes[0];
    const StageValue &sum = stages[0].values[0], &stored = stages[1].values[0];
    const DType dtype = s_.graph[sum.value].dtype();
    if (s_.kernel.iter.axes[reduced].is_symbolic() || s_.graph[stored.value].dtype() != dtype ||
        s_.extent(reduced) < 4 * kCarriedRows)
      return std::nullopt;
    int64_t sums = 1;
    for (const int64_t axis : s_.outer) {
      if (s_.kernel.iter.axes[axis].is_symbolic() || stored.strides[axis] != sum.strides[axis])
        return std::nullopt;
      sums *= s_.extent(axis);
    }
    if (sums * size_of(dtype) > s_.caps.l2_bytes / 2) return std::nullopt;
    const auto& accesses = vector_axis_.accesses();
    const bool reads_rows = std::any_of(accesses.begin(), accesses.end(), [&](const auto& access) {
      const auto row = access.stride(reduced);
      const int64_t size = size_of(s_.graph[access.value].dtype());
      const bool is_shared = std::all_of(s_.outer.begin(), s_.outer.end(), [&](int64_t axis) {
        return axis == lanes_axis || !access.position.depends_on(static_cast<uint32_t>(axis));
      });
      return !access.is_store && is_shared && row && std::abs(*row) * size >= kLongRowBytes &&
             access.stride(lanes_axis) == 1 &&
             s_.extent(lanes_axis) * s_.extent(reduced) * size > s_.caps.l2_bytes;
    });
    return reads_rows ? std::optional(reduced) : std::nullopt;
  }

  int64_t copies(int64_t lanes_axis) const { return s_.step[lanes_axis] / vector_axis_.lanes(); }

  // Chooses register tiles: as many accumulators as registers allow, so that each loaded vector is
  // used often. In a product with a single vector, the matrix is read only once, and more
  // accumulators let its rows be read in long runs.
  void tile_contraction(const Ints& vec) {
    const bool along_output = !vec.empty() && s_.is_outer(vec.front());
    const int64_t registers = s_.caps.num_vector_registers;
    // Outer axes without lanes, the longest last. But axes at whose points the same vectors are
    // read come after all others.
    Ints rows;
    for (const int64_t axis : s_.outer)
      if (vec.empty() || axis != vec.front()) rows.push_back(axis);
    const auto rank = [&](int64_t axis) {
      return std::pair(along_output && shares_vectors(vec.front(), axis), s_.extent(axis));
    };
    std::sort(rows.begin(), rows.end(), [&](int64_t a, int64_t b) { return rank(a) < rank(b); });
    if (along_output) {
      carried_ = carried_axis(vec.front());
      const bool shared =
          !rows.empty() && s_.extent(rows.back()) > 1 && shares_vectors(vec.front(), rows.back());
      const bool few = carried_ && (!shared || s_.extent(rows.back()) <= kCarriedVectors);
      if (shared || carried_)
        s_.unroll(vec.front(), fitting(vec.front(), few ? kCarriedVectors : 2));
      else
        s_.unroll(vec.front(), evenly(vec.front(), registers - 8));
      const int64_t most = shared ? most_tile_rows(s_.caps) : registers / 4 / copies(vec.front());
      if (!rows.empty()) s_.unroll(rows.back(), evenly(rows.back(), most));
      return;
    }
    // Lanes are along the contracted axis: a tile of dot products. If these are few, each has
    // several accumulators.
    int64_t budget = registers / 2;
    for (size_t i = rows.size(); i-- > 0 && budget > 1;) {
      const int64_t factor = fitting(rows[i], std::min<int64_t>(4, budget));
      s_.unroll(rows[i], factor);
      budget /= factor;
    }
    if (!vec.empty() && budget > 2) s_.unroll(vec.front(), fitting(vec.front(), budget / 2));
  }

  // The outer axis along which an array is contiguous that the lanes, on another axis, read with a
  // stride. Nothing if there is none, or if the array stays in cache: it has few elements, or a
  // short side and no squares that registers transpose.
  std::optional<int64_t> transposed_axis(const Ints& vec) const {
    const int64_t points = max_elements(s_.graph[s_.kernel.outputs.front()].shape());
    if (s_.around || s_.has_inner_axes() || vec.empty() || points <= kFewPoints)
      return std::nullopt;
    for (const MemoryAccess& access : vector_axis_.accesses()) {
      const auto stride = access.stride(vec.front());
      if (!stride || std::abs(*stride) <= 1) continue;
      for (const int64_t axis : s_.outer) {
        const auto across = access.stride(axis);
        if (!across || std::abs(*across) != 1) continue;
        const int64_t shorter = std::min(s_.extent(vec.front()), s_.extent(axis));
        if (shorter > kCachedSide ||
            (shorter >= vector_axis_.lanes() && reads_squares(vec.front(), axis)))
          return axis;
      }
    }
    return std::nullopt;
  }

  // Whether an array that is contiguous along the transposed axis consists of squares with as many
  // rows as a vector has lanes. These are transposed in registers.
  bool reads_squares(int64_t lanes_axis, int64_t transposed) const {
    const int64_t lanes = vector_axis_.lanes();
    if (lanes < 4 || lanes > kMostSquareRows || s_.kernel.stages().size() > 1) return false;
    const PointCost cost =
        point_cost(s_.graph, s_.kernel, s_.kernel.stages().front(), s_.caps, lanes);
    if (cost.operations > kMostSquareOperations) return false;
    const auto& accesses = vector_axis_.accesses();
    return std::any_of(accesses.begin(), accesses.end(), [&](const MemoryAccess& access) {
      const auto along = access.stride(lanes_axis);
      const auto across = access.stride(transposed);
      return !access.is_store && along && std::abs(*along) >= lanes && across &&
             std::abs(*across) == 1;
    });
  }

  // Makes workgroups tiles over both axes of a transpose, so that a loaded cache line is used
  // completely before it is evicted.
  void tile_transpose(const Ints& tiled) {
    const Value output = s_.kernel.outputs.front();
    const int64_t size = size_of(s_.graph[output].dtype());
    int64_t side = size < 4 ? kCachedSide : kTransposeTile;
    if (size >= 4 && bypasses_cache(output)) side = std::max(side, kStreamedRowBytes / size);
    for (const int64_t axis : s_.outer) {
      const bool in_tile = contains(tiled, axis);
      const int64_t whole = round_up(s_.extent(axis), s_.step[axis]);
      s_.block_tile[axis] =
          in_tile ? std::min(whole, round_up(side, s_.step[axis])) : s_.step[axis];
      s_.kernel.iter.mapping.block.push_back(axis);
    }
  }

  void spread_over_cores() {
    int64_t tasks = 1;
    if (is_worth_sharing(s_.caps, s_.work_ns)) {
      // A power of two of tasks for each core divides most sizes evenly.
      const double worthwhile = s_.work_ns / std::max(1.0, s_.caps.parallel_ns) / s_.caps.num_cores;
      tasks = s_.caps.num_cores;
      while (!carried_ && tasks < kTasksPerCore * s_.caps.num_cores &&
             2 * tasks <= worthwhile * s_.caps.num_cores)
        tasks *= 2;
    }
    for (const int64_t axis : s_.outer) {
      if (tasks <= 1) break;
      // Divides only the axis with the lanes, so that each core reads its part of the matrix once.
      if (carried_ && !contains(s_.kernel.iter.mapping.vec, axis)) continue;
      const int64_t steps = ceil_div(s_.extent(axis), s_.step[axis]);
      const int64_t pieces = std::min(steps, tasks);
      s_.block_tile[axis] = ceil_div(steps, pieces) * s_.step[axis];
      s_.kernel.iter.mapping.block.push_back(axis);
      tasks = ceil_div(tasks, pieces);
    }
  }

  MappingState& s_;
  VectorAxis vector_axis_;
  std::optional<int64_t> carried_;  // the axis along which sums are carried in the output
};

}  // namespace

void map_to_cores(MappingState& state) {
  CoreMapper(state).run();
}

}  // namespace rune::schedule
