// Maps a kernel's axes to the machine: cores or workgroups, vector lanes or threads, loops.
#pragma once

#include "schedule/analysis/accesses.h"

namespace rune::schedule {

// Whether a kernel computes as many neighbouring points as it has lanes at once, so that squares of
// what its lanes read far apart can be transposed in registers.
bool computes_squares(const Kernel& kernel);

// Chooses everything but the axes and stages, which are set. `work_ns` is the kernel's time on one
// core; it decides how far to spread the work.
void map_axes(const Graph& graph, const Capabilities& caps, double work_ns, Kernel& kernel);

// The same for a phase of the kernel `around`, whose tiles are set. Returns false, changing nothing
// that matters, if its loops cannot run inside those.
bool map_phase(const Graph& graph, const Capabilities& caps, const Kernel& around, Kernel& phase);

// The pass `map_to_machine`: maps all kernels. The analysis, which decides how far to spread the
// work, is made again for the mapped kernels.
Schedule map_to_machine(Schedule schedule, const Capabilities& caps);

}  // namespace rune::schedule
