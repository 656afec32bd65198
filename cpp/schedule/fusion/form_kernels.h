// Forms kernels from clusters of values: their axes, stages and buffers.
#pragma once

#include <vector>

#include "schedule/fusion/fuse.h"

namespace rune::schedule {

// Gives a cluster its axes and stages, and merges adjacent axes if every access allows it. Sets
// ops, inputs and outputs, but no mapping, hints or places of buffers. Returns one kernel, except
// that
// - a concatenation that is stored part by part becomes a kernel for each part;
// - a Scatter whose cluster does not store the initial contents becomes two kernels, and so does a
//   reduction whose workgroups combine atomically: the first stores the initial contents, and the
//   second updates them.
std::vector<Kernel> form_kernels(const Graph& graph, const Cluster& cluster, const Fusion& fusion);

}  // namespace rune::schedule
