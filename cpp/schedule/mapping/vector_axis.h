// Chooses the axes that carry the lanes of a kernel's vectors, by the kernel's memory accesses.
#pragma once

#include <limits>
#include <optional>
#include <vector>

#include "schedule/analysis/accesses.h"
#include "types/capabilities.h"

namespace rune::schedule {

// The largest number of rows, and lanes, of squares that are transposed in registers. Larger
// squares take too long to compile.
constexpr int64_t kMostSquareRows = 16;

// The largest number of rows of a contraction's register tile, whose rows have two vectors each,
// that leaves registers for loads.
int64_t most_tile_rows(const Capabilities& caps);

// The kernel's axes and stages are set. The objects that this refers to must outlive it.
class VectorAxis {
 public:
  // `around` is the kernel that contains this phase, or null.
  VectorAxis(const Graph& graph, const Capabilities& caps, const Kernel& kernel,
             const Kernel* around);

  int64_t lanes() const { return lanes_; }
  // How many copies of an iteration are worth compiling at most. (After `fit_lanes`.)
  int64_t most_copies() const { return most_copies_; }
  const std::vector<MemoryAccess>& accesses() const { return accesses_; }

  // The axes that carry the lanes: one outer axis, or one inner axis of each stage that has inner
  // axes. Empty if no axis is suitable.
  Ints choose() const;

  // Reduces the lanes to those that these axes fill, rounded up to a power of two. Leaves only few
  // lanes if elements of narrow dtypes are loaded one by one.
  void fit_lanes(const Ints& axes);

  // The axis whose points fill the gaps between the elements of neighbouring lanes, if all of them
  // can be accessed together. The lanes are on the outer axis `lanes_axis`.
  std::optional<int64_t> filling_axis(const MemoryAccess& access, int64_t lanes_axis) const;

 private:
  int64_t extent(int64_t axis) const { return kernel_.iter.axes[axis].extent(); }
  bool is_outer(int64_t axis) const;
  bool decides_places(int64_t axis) const;
  bool is_by_outer_point(Value v) const;
  int64_t choose_lanes() const;
  bool reads_across() const;
  double share_of(size_t stage) const;
  double rows_sharing(const MemoryAccess& access, int64_t lanes_axis) const;
  double strided_cost(int64_t stride) const;
  bool loads_lanes(const MemoryAccess& access, int64_t axis) const;
  bool is_for_some(const MemoryAccess& access, int64_t axis) const;
  double score(int64_t axis, int stage) const;
  double lane_use(int64_t axis) const;
  double lane_use(const Stage& stage, int64_t axis) const;
  Ints inner_axes() const;

  const Graph& graph_;
  const Capabilities& caps_;
  const Kernel& kernel_;
  const Kernel* const around_;
  const std::vector<MemoryAccess> accesses_;
  const Ints outer_;
  const bool contracts_, sequential_;
  int64_t lanes_;
  int64_t most_copies_ = std::numeric_limits<int64_t>::max();
};

}  // namespace rune::schedule
