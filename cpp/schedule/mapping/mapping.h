// Maps a kernel's axes to the machine: cores or workgroups, vector lanes or threads, loops.
#pragma once

#include "schedule/analysis/accesses.h"

namespace rune::schedule {

inline constexpr int64_t kCacheLineBytes = 64;  // as most cores have

// Whether a kernel computes as many adjacent points at once as it has lanes, or copies as many in
// tiles of its operands. If the elements of neighbouring lanes lie far apart, they can then be
// loaded as squares and transposed in registers.
bool computes_squares(const Kernel& kernel);

// Whether the kernel's first and only reduction is a contraction over one axis, maps store at its
// points, and the sizes of the axes are known.
bool is_contraction(const Graph& graph, const Kernel& kernel);

// Maps a kernel whose axes and stages are set. `work_ns` is its time on one core, which decides how
// many cores share the work.
void map_axes(const Graph& graph, const Capabilities& caps, double work_ns, Kernel& kernel);

// Maps a phase of the kernel `around`, whose tiles are set. Returns false if the phase's loops
// cannot run inside of the tiles.
bool map_phase(const Graph& graph, const Capabilities& caps, const Kernel& around, Kernel& phase);

// The pass `map_to_machine`: maps all kernels. Uses the analysis to decide over how many cores to
// spread the work, and then makes the analysis again for the mapped kernels.
Schedule map_to_machine(Schedule schedule, const Capabilities& caps);

}  // namespace rune::schedule
