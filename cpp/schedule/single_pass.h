// Dependent reductions of rows too long for the cache, read once for both.
#pragma once

#include "schedule/schedule.h"
#include "types/capabilities.h"

namespace rune::schedule {

// Sums of exp(x - max x), of x - c and of (x - c)^2, where c depends on the sum of x, read x a
// second time once its first reduction is known. Where x does not stay in cache meanwhile, both
// reductions are taken of parts that do, and their results merged: by a factor between
// exponentials, and by the moments' identity. Maxima, and sums of x, are what they were but for the
// order of additions. On a device of many threads the parts are those of its workgroups.
graph::Graph reduce_in_single_pass(graph::Graph graph, const Capabilities& caps);

// Whether a stage of the kernel reduces both deviations and their squares: the second moment about
// the exact mean follows, and moments of parts merge without loss (the plan Welford).
bool reduces_moments(const graph::Graph& graph, const Kernel& kernel);

}  // namespace rune::schedule
