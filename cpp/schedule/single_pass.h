// Dependent reductions of rows too long for the cache, read once for both.
#pragma once

#include "graph/node.h"
#include "types/capabilities.h"

namespace rune::schedule {

// Sums of exp(x - max x) and of (x - c)^2, where c depends on the sum of x, read x a second time
// once its first reduction is known. Where x does not stay in cache meanwhile, both reductions are
// taken of parts that do, and their results merged: by a factor between exponentials, and by the
// moments' identity. Maxima, and sums of x, are what they were but for the order of additions.
graph::Graph reduce_in_single_pass(const graph::Graph& graph, const Capabilities& caps);

}  // namespace rune::schedule
