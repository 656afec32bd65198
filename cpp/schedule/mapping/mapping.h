// Maps a kernel's axes to the machine: cores or workgroups, vector lanes or threads, loops.
#pragma once

#include "schedule/analysis/accesses.h"

namespace rune::schedule {

inline constexpr int64_t kCacheLineBytes = 64;  // of usual cores

// Whether a kernel computes, or copies in tiles of its operands, as many adjacent points at once as
// it has lanes. Elements that lie far apart for neighbouring lanes can then be loaded as squares
// and transposed in registers.
bool computes_squares(const Kernel& kernel);

// Maps a kernel whose axes and stages are set. `work_ns` is its time on one core, which decides how
// many cores share the work.
void map_axes(const Graph& graph, const Capabilities& caps, double work_ns, Kernel& kernel);

// Maps a phase of the kernel `around`, whose tiles are set. Returns false if the phase's loops
// cannot run inside of these.
bool map_phase(const Graph& graph, const Capabilities& caps, const Kernel& around, Kernel& phase);

// The pass `map_to_machine`: maps all kernels. The analysis, which decides how far to spread the
// work, is made again for the mapped kernels.
Schedule map_to_machine(Schedule schedule, const Capabilities& caps);

}  // namespace rune::schedule
