// Graph rewrites that scheduling needs.
#pragma once

#include "graph/node.h"
#include "types/capabilities.h"

namespace rune::schedule {

// Gives every output a buffer of its own: an output that is an argument, a constant, or an earlier
// output again becomes a copy; a reshape of a computed value is dropped, since the buffer is the
// same. A reduction of no elements becomes its identity.
graph::Graph prepare_outputs(const graph::Graph& graph);

// Splits long reductions with too few results to keep the device busy into partial results, which
// are stored, and a reduction of those (a second kernel).
graph::Graph split_reductions(const graph::Graph& graph, const Capabilities& caps);

}  // namespace rune::schedule
