// The state of a mapping under construction, for cores and for grids.
#pragma once

#include "schedule/analysis/accesses.h"
#include "types/capabilities.h"

namespace rune::schedule {

// The kernel's axes and stages are set. `around` is the kernel that contains this phase, or null.
// The objects that the state refers to must outlive it.
struct MappingState {
  MappingState(const Graph& graph, const Capabilities& caps, double work_ns, Kernel& kernel,
               const Kernel* around);

  int64_t extent(int64_t axis) const { return kernel.iter.axes[axis].extent(); }
  bool is_outer(int64_t axis) const;
  // Whether the kernel is a phase and all phases have this axis.
  bool is_shared(int64_t axis) const;
  bool has_inner_axes() const { return outer.size() < kernel.iter.axes.size(); }
  // Computes `factor` points along the axis at once, or fewer if a shared tile requires that.
  void unroll(int64_t axis, int64_t factor);
  void vectorize(int64_t axis, int64_t lanes);

  const Graph& graph;
  const Capabilities& caps;
  const double work_ns;  // on one core
  Kernel& kernel;
  const Kernel* const around;
  const Ints outer;
  const bool contracts;
  const Stage* const sequential;  // the stage that runs in order; null if none does
  Ints step;                      // by axis: points that one iteration of its innermost loop covers
  Ints block_tile;  // by axis: points that one workgroup covers; 0 if it is no block axis
  Ints patch;       // by axis: those of them that a SIMD-group covers at once; 0 if not divided
};

// Maps a kernel to cores: vectors, register tiles, and the tasks that cores share.
void map_to_cores(MappingState& state);

// Maps a kernel to workgroups of threads.
void map_to_grid(MappingState& state);

// Whether shuffles can combine the results of the threads of a SIMD-group, and then those of the
// SIMD-groups that share a point.
bool combines_by_shuffles(const Graph& graph, const Kernel& kernel, const Capabilities& caps);

// The reduced axis that workgroups share if they combine by atomic operations.
std::optional<int64_t> reduced_axis_of_groups(const MappingState& state);

}  // namespace rune::schedule
