// Forms kernels from clusters of values: their axes, stages and buffers.
#pragma once

#include <vector>

#include "schedule/fusion/fuse.h"

namespace rune::schedule {

// Gives a cluster its axes and stages, and merges adjacent axes where every access allows it.
// Mapping, hints and the buffers' places are still to be chosen; ops, inputs and outputs are set.
// The result is one kernel, except that
// - a concatenation that is stored part by part becomes a kernel for each part, and
// - a Scatter whose cluster does not store the beginning, and a reduction whose workgroups combine
//   atomically, become two: the first stores the initial contents, the second updates them.
std::vector<Kernel> form_kernels(const Graph& graph, const Cluster& cluster, const Fusion& fusion);

}  // namespace rune::schedule
