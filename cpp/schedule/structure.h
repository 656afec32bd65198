// Finds equal kernels. A schedule has each kernel once, and launches of it.
#pragma once

#include <vector>

#include "schedule/schedule.h"

namespace rune::schedule {

struct SharedKernels {
  std::vector<Kernel> kernels;   // in the order of their first launches
  std::vector<Launch> launches;  // one for each kernel that was formed, in order
};

// Finds equal kernels among those formed, which have no arguments yet. Two launches share a kernel
// if their kernels differ only in
// - their names, and the values that they compute and read,
// - the offset at which they read an input, if they read it through Shrink nodes only,
// - the offset of the part of a Cat that they store,
// - scalar constants, except those that make an integer operation cheaper or select an element of
//   an array.
// The differences become arguments of the launches. A kernel has few arguments (kMostArguments,
// kMostIntegerArguments). Launches that would need more of them get several kernels.
SharedKernels share_kernels(const Graph& graph, const std::vector<Kernel>& formed);

// The kernel with the values and offsets of one launch, and without arguments.
Kernel instantiate(Kernel kernel, const Launch& launch);

}  // namespace rune::schedule
