// Equal kernels. A schedule has each kernel once, and launches of it.
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
// - scalar constants; but those that make an integer operation cheaper, or say which element of an
//   array is read, must be equal.
// The arguments of a launch say what it differs in. A kernel has few of them (kMostArguments,
// kMostIntegerArguments); launches that would need more are of several kernels.
SharedKernels share_kernels(const Graph& graph, const std::vector<Kernel>& formed);

// The kernel as the launch runs it: with the launch's values and offsets, without arguments.
Kernel instantiate(Kernel kernel, const Launch& launch);

}  // namespace rune::schedule
