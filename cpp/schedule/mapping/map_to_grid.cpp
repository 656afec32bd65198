#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "base/math.h"
#include "graph/parallel_work.h"
#include "schedule/analysis/accesses.h"
#include "schedule/mapping/grid_accesses.h"
#include "schedule/mapping/grid_reduction.h"
#include "schedule/mapping/mapping.h"
#include "schedule/mapping/mapping_state.h"

namespace rune::schedule {

namespace {

// The number of threads of a workgroup.
constexpr int64_t kGroupThreads = 256;
constexpr int64_t kGroupReduceElements = 64;  // shorter reductions stay within a thread

// Limits of kernels whose threads compute several points: longer text takes too long to compile,
// and numbers of points must fit 32 bits.
constexpr size_t kMostOpsOfPoints = 128;
constexpr int64_t kMostPoints = (int64_t{1} << 31) - (int64_t{1} << 16);
constexpr int64_t kGroupsPerCore = 4;
// The number of SIMD-groups that keep a core busy if each thread computes a result alone.
constexpr int64_t kBusyWarps = 16;
// The most results that a workgroup computes side by side because they share operands.
constexpr int64_t kMostResultsOfGroup = 4;
// The most terms of a reduction for which a thread computes several points.
constexpr int64_t kFewTerms = 16;
// The most loads and stores for a thread's points.
constexpr int64_t kMostAccesses = 96;
// If an operand is transposed: the columns of the patch that a SIMD-group computes, or its rows if
// each thread has a square of it.
constexpr int64_t kPatchWidth = 8;
// The longest side of such a square.
constexpr int64_t kLongestSide = 4;
// The least workgroups per core if threads have such squares.
constexpr int64_t kGroupsOfSquares = 2;
// The bytes of a cache line. A thread that reads as much of several rows has enough loads at once.
constexpr int64_t kLineBytes = 128;
// The most instances of a kernel's operations in its text.
constexpr int64_t kMostOpsOfText = 512;

class GridMapper {
 public:
  explicit GridMapper(MappingState& state) : s_(state) {}

  // Gives each point a workgroup, with threads along the stages' innermost axes, or gives each
  // point or each update a thread.
  void run() {
    Mapping& mapping = s_.kernel.iter.mapping;
    const bool by_group =
        s_.has_inner_axes() && (longest_reduction() >= kGroupReduceElements || reduces_rows()) &&
        (!s_.contracts || !fills_device()) && !reduces_columns() && !reduces_short_lines();
    if (updates_atomically()) {
      deal_to_threads(all_axes());
    } else if (scans_by_simd_group()) {
      mapping.block = s_.outer;
      for (const int64_t axis : mapping.block) s_.block_tile[axis] = 1;
      mapping.thread = s_.sequential->axes;
      mapping.threads = s_.caps.simd_width;
      read_together(1);
      form_teams();
    } else if (by_group) {
      const std::optional<int64_t> side_by_side = axis_of_results();
      for (const int64_t axis : s_.outer)
        if (axis != side_by_side) mapping.block.push_back(axis);
      if (const auto shared = reduced_axis_of_groups(s_)) mapping.block.push_back(*shared);
      for (const int64_t axis : mapping.block) s_.block_tile[axis] = 1;
      if (side_by_side) {
        mapping.serial.push_back(*side_by_side);
        s_.unroll(*side_by_side, s_.extent(*side_by_side));
      }
      int64_t longest = 1;
      for (const Stage& stage : s_.kernel.stages()) {
        Ints axes = stage.axes;
        std::erase_if(axes, [&](int64_t axis) { return s_.block_tile[axis] > 0; });
        if (axes.empty()) continue;
        longest = std::max(longest, s_.extent(axes.back()));
        mapping.thread.push_back(axes.back());
        mapping.serial.insert(mapping.serial.end(), axes.begin(), axes.end() - 1);
      }
      const int64_t results = side_by_side ? s_.extent(*side_by_side) : 1;
      if (results > kMostResultsOfGroup)
        longest = std::min(results * longest, kGroupThreads * s_.caps.row_points_per_thread);
      mapping.threads = row_threads(longest);
      read_together(results);
      form_teams();
    } else {
      deal_to_threads(without_narrow_rows());
      for (const Stage& stage : s_.kernel.stages())
        mapping.serial.insert(mapping.serial.end(), stage.axes.begin(), stage.axes.end());
      if (reduces_columns()) read_columns_together();
    }
  }

 private:
  int64_t outer_points() const {
    int64_t points = 1;
    for (const int64_t axis : s_.outer) points *= s_.extent(axis);
    return points;
  }

  // Whether one thread for each result keeps the device busy.
  bool fills_device() const {
    return outer_points() >= kBusyWarps * s_.caps.simd_width * s_.caps.num_cores;
  }

  // Whether reduced lines are short, such as windows of a few elements, so that most threads of a
  // SIMD-group would have no element, and one thread for each result keeps the device busy.
  bool reduces_short_lines() const {
    const auto is_short = [&](const Stage& stage) {
      return stage.axes.empty() || (stage.kind == StageKind::Reduce &&
                                    2 * s_.extent(stage.axes.back()) <= s_.caps.simd_width);
    };
    const std::vector<Stage>& stages = s_.kernel.stages();
    return fills_device() && std::all_of(stages.begin(), stages.end(), is_short);
  }

  // Whether the kernel reduces rows that are long enough for all threads of a SIMD-group.
  bool reduces_rows() const {
    const auto is_row = [&](const Stage& stage) {
      return stage.kind == StageKind::Reduce && stage.axes.size() == 1 &&
             s_.extent(stage.axes.back()) >= s_.caps.simd_width;
    };
    const std::vector<Stage>& stages = s_.kernel.stages();
    return !s_.contracts && std::any_of(stages.begin(), stages.end(), is_row);
  }

  // Whether the threads of a SIMD-group scan a line together. They must be able to read one
  // another's sums, and the line's elements must be adjacent or the lines few.
  bool scans_by_simd_group() const {
    if (!s_.sequential || s_.sequential->kind != StageKind::Scan || s_.sequential->axes.size() != 1)
      return false;
    const StageValue& value = s_.sequential->values.front();
    const int64_t axis = s_.sequential->axes.front();
    const auto dtype = static_cast<size_t>(s_.graph[value.value].dtype());
    return s_.caps.simd_shuffles[dtype] && s_.extent(axis) >= s_.caps.simd_width &&
           (value.strides[axis] == 1 || !fills_device());
  }

  // A short outer axis whose results a workgroup computes side by side, because their reductions
  // share operands or cache lines.
  std::optional<int64_t> axis_of_results() const {
    if (s_.contracts || reduced_axis_of_groups(s_)) return std::nullopt;
    const auto ops = static_cast<int64_t>(s_.kernel.ops.size());
    for (const int64_t axis : s_.outer) {
      const int64_t extent = s_.extent(axis);
      if (extent < 2 || extent >= s_.caps.simd_width || s_.kernel.iter.axes[axis].is_symbolic() ||
          extent * ops > kMostOpsOfText ||
          outer_points() / extent < kGroupsPerCore * s_.caps.num_cores)
        continue;
      for (const MemoryAccess& access : memory_accesses(s_.graph, s_.kernel)) {
        const Stage& stage = s_.kernel.stages()[access.stage];
        if (stage.kind != StageKind::Reduce || access.is_store) continue;
        const auto depends = [&](int64_t on) {
          return access.position.depends_on(static_cast<uint32_t>(on));
        };
        const auto step = [&](int64_t along) {
          return std::abs(access.position.coefficient_of(static_cast<uint32_t>(along)).value_or(0));
        };
        const bool shares_operand =
            !depends(axis) && std::any_of(stage.axes.begin(), stage.axes.end(), depends);
        const bool shares_lines = step(axis) == 1 && step(stage.axes.back()) >= extent &&
                                  std::none_of(stage.axes.begin(), stage.axes.end(),
                                               [&](int64_t a) { return step(a) == 1; });
        if (shares_lines || (shares_operand && extent <= kMostResultsOfGroup)) return axis;
      }
    }
    return std::nullopt;
  }

  // The number of threads for a row, such that each has the points that it should read together. If
  // several stages read the row, each thread must be able to keep its points in registers.
  int64_t row_threads(int64_t longest) const {
    int64_t each = s_.caps.row_points_per_thread;
    // Few workgroups cannot hide loads, so no thread should have more than it can read at once.
    if (outer_points() < s_.caps.num_cores)
      each =
          std::clamp<int64_t>(kMostOpsOfText / static_cast<int64_t>(s_.kernel.ops.size()), 1, each);
    int64_t threads = group_threads(ceil_div(longest, each));
    if (each > 1 && s_.kernel.stages().size() > 1)
      while (2 * threads <= s_.caps.max_threads_per_group && longest > 2 * each * threads)
        threads *= 2;
    return threads;
  }

  // If a SIMD-group computes a point alone, gives a workgroup several SIMD-groups. A core runs
  // fewer workgroups than SIMD-groups at a time, and starting a workgroup takes time.
  void form_teams() {
    Mapping& mapping = s_.kernel.iter.mapping;
    const bool is_symbolic =
        std::any_of(mapping.block.begin(), mapping.block.end(),
                    [&](int64_t axis) { return s_.kernel.iter.axes[axis].is_symbolic(); });
    if (mapping.threads != s_.caps.simd_width || is_symbolic || reduced_axis_of_groups(s_) ||
        !combines_by_shuffles(s_.graph, s_.kernel, s_.caps))
      return;
    int64_t points = 1;
    for (const int64_t axis : mapping.block) points *= s_.extent(axis);
    int64_t teams =
        std::min<int64_t>(kGroupThreads, s_.caps.max_threads_per_group) / s_.caps.simd_width;
    while (teams > 1 && points < teams * kGroupsPerCore * s_.caps.num_cores) teams /= 2;
    if (teams < 2) return;
    mapping.teams = teams;
    mapping.threads *= teams;
  }

  // Makes threads, which compute `results` results side by side, read some points of their axes
  // together. If several stages read a row, threads read all their points if these are few enough.
  void read_together(int64_t results) {
    const int64_t each = s_.caps.row_points_per_thread;
    const auto ops = static_cast<int64_t>(s_.kernel.ops.size());
    const int64_t lanes = each > 1 && results == 1 ? lanes_of_rows(s_) : 1;
    for (const int64_t axis : s_.kernel.iter.mapping.thread) {
      if (s_.kernel.iter.axes[axis].is_symbolic()) continue;
      const int64_t points = s_.extent(axis) / s_.kernel.iter.mapping.threads;
      const bool is_kept = s_.kernel.iter.mapping.thread.size() > 1 &&
                           (results > kMostResultsOfGroup ? points * results : points) <= 2 * each;
      const int64_t most =
          std::min(is_kept ? points : std::min(points, each / results), kMostOpsOfText / ops);
      s_.vectorize(axis, lanes);
      if (each > 1) s_.unroll(axis, most / lanes);
    }
  }

  // Whether adjacent threads should compute adjacent results, because an operand is contiguous
  // along an outer axis and not along the reduced one. Operands that all these results share do not
  // matter.
  bool reduces_columns() const {
    if (s_.contracts || s_.sequential || !fills_device()) return false;
    std::optional<int64_t> column;
    std::vector<MemoryAccess> along_lines;
    for (const MemoryAccess& access : memory_accesses(s_.graph, s_.kernel)) {
      const Stage& stage = s_.kernel.stages()[access.stage];
      if (stage.kind != StageKind::Reduce || access.is_store) continue;
      const auto step = [&](int64_t axis) {
        return access.position.coefficient_of(static_cast<uint32_t>(axis)).value_or(0);
      };
      const int64_t within = std::abs(step(stage.axes.back()));
      if (within == 1) along_lines.push_back(access);
      for (const int64_t axis : s_.outer)
        if (within > 1 && step(axis) == 1) column = axis;
    }
    return column && std::none_of(along_lines.begin(), along_lines.end(), [&](const auto& access) {
             return access.position.depends_on(static_cast<uint32_t>(*column));
           });
  }

  // Makes threads read some elements of their columns at once: twice as many words as points in
  // elementwise kernels, because long columns leave fewer threads. With several reductions there
  // are not enough registers.
  void read_columns_together() {
    int64_t reductions = 0;
    for (const Stage& stage : s_.kernel.stages())
      if (stage.kind == StageKind::Reduce) reductions += static_cast<int64_t>(stage.values.size());
    if (s_.caps.points_per_thread == 1 || reductions > 1) return;
    const auto ops = static_cast<int64_t>(s_.kernel.ops.size());
    int64_t words = 1;
    for (const MemoryAccess& access : memory_accesses(s_.graph, s_.kernel))
      words = std::max<int64_t>(words, size_of(s_.graph[access.value].dtype()) / 4);
    const int64_t most = std::min(2 * s_.caps.points_per_thread / words, kMostOpsOfText / ops);
    for (const Stage& stage : s_.kernel.stages()) {
      if (stage.kind != StageKind::Reduce) continue;
      const int64_t axis = stage.axes.back();
      if (!s_.kernel.iter.axes[axis].is_symbolic())
        s_.unroll(axis, std::min(most, s_.extent(axis)));
    }
  }

  int64_t longest_reduction() const {
    int64_t longest = 0;
    for (const Stage& stage : s_.kernel.stages()) {
      if (stage.kind != StageKind::Reduce) continue;
      int64_t size = 1;
      for (const int64_t axis : stage.axes) size *= s_.extent(axis);
      longest = std::max(longest, size);
    }
    return longest;
  }

  int64_t group_threads(int64_t work) const {
    int64_t threads = s_.caps.simd_width;
    const int64_t most = std::min<int64_t>(kGroupThreads, s_.caps.max_threads_per_group);
    while (threads < most && threads < work) threads *= 2;
    while (threads > most) threads /= 2;
    return threads;
  }

  // Gives each point of these axes a thread.
  void deal_to_threads(const Ints& axes) {
    s_.kernel.iter.mapping.block = s_.kernel.iter.mapping.thread = axes;
    int64_t points = 1;
    for (const int64_t axis : axes) points *= s_.extent(axis), s_.block_tile[axis] = 1;
    // A single point has no axis for threads.
    if (axes.empty()) return;
    Mapping& mapping = s_.kernel.iter.mapping;
    mapping.threads = group_threads(points);
    if (tile_transposed(points)) return;
    if (const int64_t each = points_together(points); each > 1) mapping.points = each;
  }

  // The outer axes, without a short one along which an operand is contiguous. Each thread computes
  // all points of that one, so that it uses the whole cache lines.
  Ints without_narrow_rows() {
    if (!is_brief()) return s_.outer;
    const auto axes = turned_axes();
    if (!axes) return s_.outer;
    const int64_t row = axes->first, points = s_.extent(row);
    const auto accesses = static_cast<int64_t>(memory_accesses(s_.graph, s_.kernel).size());
    const auto ops = static_cast<int64_t>(s_.kernel.ops.size());
    const int64_t threads = kBusyWarps * s_.caps.simd_width * s_.caps.num_cores;
    if (points < 2 || points >= s_.caps.simd_width || points * accesses > kMostAccesses ||
        points * ops > kMostOpsOfText || outer_points() / points < threads)
      return s_.outer;
    s_.kernel.iter.mapping.serial.push_back(row);
    s_.unroll(row, points);
    Ints others = s_.outer;
    std::erase(others, row);
    return others;
  }

  // If an operand is contiguous along another axis than the result, a workgroup covers a square of
  // the two axes, and a SIMD-group a patch of it. A thread covers a square of the patch if it can
  // access each of the square's rows at once. So operand and result are accessed by whole sectors
  // of memory, and other SIMD-groups soon use the rest of a cache line. Threads with such squares
  // exchange them if the shared memory has room.
  bool tile_transposed(int64_t points) {
    if (!is_brief()) return false;
    const auto axes = turned_axes();
    if (!axes) return false;
    for (int64_t own = side_of_thread(*axes); own > 1; own /= 2)
      if (points >= kGroupsOfSquares * s_.caps.num_cores * own * own * threads() &&
          tile_transposed(*axes, own * own, own))
        return true;
    return points >= s_.caps.points_per_thread * threads() &&
           tile_transposed(*axes, s_.caps.points_per_thread, 1);
  }

  int64_t threads() const { return s_.kernel.iter.mapping.threads; }

  // Threads have squares with sides of `own` points. Threads that exchange them read rows of the
  // workgroup's square from end to end. Otherwise both sides of a patch are at least a sector long.
  bool tile_transposed(const std::pair<int64_t, int64_t>& axes, int64_t points_of_thread,
                       int64_t own) {
    Mapping& mapping = s_.kernel.iter.mapping;
    const auto [row, column] = axes;
    const int64_t of_group = threads() * points_of_thread;
    int64_t side = 1;
    while (side * side < of_group) side *= 2;
    const bool exchanges =
        own > 1 && side * side * (s_.caps.access_bytes / own) <= s_.caps.shared_memory_bytes;
    int64_t width = own > 1 ? s_.caps.simd_width / kPatchWidth : kPatchWidth;
    if (exchanges) width = std::min<int64_t>(s_.caps.simd_width, side / own);
    const int64_t height = width < 1 ? 0 : s_.caps.simd_width / width;
    if (height < 1 || side * side != of_group || side % (height * own) || side % (width * own) ||
        threads() % s_.caps.simd_width || s_.extent(row) < side || s_.extent(column) < side)
      return false;
    for (const int64_t axis : {row, column}) s_.block_tile[axis] = side;
    s_.patch[row] = height * own;
    s_.patch[column] = width * own;
    if (own > 1) {
      s_.unroll(row, own);
      s_.vectorize(column, own);
      if (exchanges) mapping.exchanged = true;
    }
    if (reads_mirror_images(s_, axes)) mapping.mirrored = true;
    return true;
  }

  // The side of the square of the two axes that a thread can compute: each access of a row, or of a
  // column, must be to aligned adjacent elements. 1 if there is no such square.
  int64_t side_of_thread(const std::pair<int64_t, int64_t>& axes) const {
    const auto [row, column] = axes;
    const std::vector<Stage>& stages = s_.kernel.stages();
    int64_t side = kLongestSide;
    const auto limit = [&](int64_t most) {
      while (side > 1 && side > most) side /= 2;
    };
    if (stages.size() != 1 || stages.front().kind != StageKind::Map || gathers(s_)) return 1;
    for (const MemoryAccess& access : memory_accesses(s_.graph, s_.kernel)) {
      limit(s_.caps.access_bytes / size_of(s_.graph[access.value].dtype()));
      const auto step = [&](int64_t axis) {
        return access.position.coefficient_of(static_cast<uint32_t>(axis));
      };
      if (!step(row) || !step(column)) return 1;
      if (*step(column) == 0) continue;
      if (*step(column) != 1 && (*step(row) != 1 || access.is_store)) return 1;
      limit(neighbours(s_, access, *step(column) == 1 ? column : row, side));
    }
    while (side > 1 && (s_.extent(row) % side || s_.extent(column) % side)) side /= 2;
    limit(kMostOpsOfText / (side * static_cast<int64_t>(s_.kernel.ops.size())));
    return side;
  }

  // The axis along which an operand is contiguous, and that of the result, if they differ.
  std::optional<std::pair<int64_t, int64_t>> turned_axes() const {
    std::optional<int64_t> row, column;
    const std::vector<MemoryAccess> accesses = memory_accesses(s_.graph, s_.kernel);
    const auto along = [&](const MemoryAccess& access, int64_t axis) {
      return access.position.coefficient_of(static_cast<uint32_t>(axis)).value_or(0);
    };
    for (const int64_t axis : s_.outer)
      for (const MemoryAccess& access : accesses)
        if (access.is_store && along(access, axis) == 1) column = axis;
    if (!column) return std::nullopt;
    for (const MemoryAccess& access : accesses)
      for (const int64_t axis : s_.outer)
        if (!access.is_store && axis != *column && std::abs(along(access, axis)) == 1 &&
            std::abs(along(access, *column)) > kPatchWidth)
          row = axis;
    if (!row) return std::nullopt;
    return std::pair{*row, *column};
  }

  // Whether all stages have few operations at each point.
  bool is_brief() const {
    const Kernel& kernel = s_.kernel;
    const auto is_brief = [&](const Stage& stage) {
      int64_t terms = 1;
      for (const int64_t axis : stage.axes) terms *= s_.extent(axis);
      return (stage.kind == StageKind::Map && stage.axes.empty()) ||
             (stage.kind == StageKind::Reduce && terms <= kFewTerms);
    };
    return !s_.contracts && kernel.ops.size() <= kMostOpsOfPoints &&
           std::all_of(kernel.stages().begin(), kernel.stages().end(), is_brief) &&
           std::none_of(s_.outer.begin(), s_.outer.end(),
                        [&](int64_t axis) { return kernel.iter.axes[axis].is_symbolic(); });
  }

  // The number of points that a thread computes, so that their loads overlap, in a kernel without
  // long loops. Threads must still fill the device several times, and registers must hold the
  // loads.
  int64_t points_together(int64_t points) const {
    int64_t each = s_.caps.points_per_thread;
    if (each == 1 || !s_.kernel.iter.mapping.serial.empty() || !is_brief() ||
        points > kMostPoints ||
        points < each * s_.kernel.iter.mapping.threads * kGroupsPerCore * s_.caps.num_cores)
      return 1;
    const auto accesses = static_cast<int64_t>(memory_accesses(s_.graph, s_.kernel).size());
    while (each > 1 && (each * accesses > kMostAccesses || each * row_bytes() > kLineBytes))
      each /= 2;
    return each;
  }

  // The bytes of the longest row that a thread reads alone, while adjacent threads read other rows.
  // The cache must hold the rows until they have been read.
  int64_t row_bytes() const {
    int64_t most = 0;
    for (const MemoryAccess& access : memory_accesses(s_.graph, s_.kernel)) {
      const Ints& axes = s_.kernel.stages()[access.stage].axes;
      if (axes.empty() || s_.outer.empty()) continue;
      const auto step = [&](int64_t axis) {
        return std::abs(access.position.coefficient_of(static_cast<uint32_t>(axis)).value_or(0));
      };
      const int64_t extent = s_.extent(axes.back());
      if (step(axes.back()) == 1 && step(s_.outer.back()) >= extent)
        most = std::max<int64_t>(most, extent * size_of(s_.graph[access.value].dtype()));
    }
    return most;
  }

  // Whether a Scatter's updates are combined by atomic operations.
  bool updates_atomically() const {
    if (!s_.sequential || s_.sequential->kind != StageKind::Scatter) return false;
    const graph::Node& node = s_.graph[s_.sequential->values.front().value];
    return graph::updates_atomically(*node.as<graph::Scatter>(), node.dtype(), s_.caps);
  }

  // The axis of updates and the axes of each update's elements. Adjacent threads write adjacent
  // elements.
  Ints all_axes() const {
    Ints axes = s_.sequential->axes;
    axes.insert(axes.end(), s_.outer.begin(), s_.outer.end());
    return axes;
  }

  MappingState& s_;
};

}  // namespace

void map_to_grid(MappingState& state) {
  GridMapper(state).run();
}

std::optional<int64_t> reduced_axis_of_groups(const MappingState& state) {
  for (const Stage& stage : state.kernel.stages()) {
    if (stage.kind != StageKind::Reduce || !begins_earlier(state.kernel, stage.values[0].value))
      continue;
    Shape sizes;
    for (const int64_t axis : stage.axes) sizes.push_back(state.extent(axis));
    if (const auto i = axis_of_groups(sizes, state.caps)) return stage.axes[*i];
  }
  return std::nullopt;
}

}  // namespace rune::schedule
