// The graph passes that divide work and give values memory, in the order in which they run.
#pragma once

#include "graph/node.h"
#include "types/capabilities.h"

namespace rune::graph {

// Splits long scans with too few lines to keep the device busy into blocks along their axis: the
// blocks' reductions, a scan of those, and scans of the blocks that begin with its values. A sum of
// floats is then rounded otherwise than one that runs from end to end, with a smaller bound on its
// error, and where only -0.0 came before a block, the block begins with 0.0.
Graph split_scans(Graph graph, const Capabilities& caps);

// Splits long Scatters that combine, and whose target is small beside the updates, into copies of
// the target, each with its share of the updates, and their combination: cores then work side by
// side, without atomic operations. Floats are then added in another order, that depends on the
// device and not on the threads that run.
Graph split_scatters(Graph graph, const Capabilities& caps);

// Sums of exp(x - max x), of x - c and of (x - c)^2, where c depends on the sum of x, read x a
// second time once its first reduction is known. Where x does not stay in cache meanwhile, both
// reductions are taken of parts that do, and their results merged: by a factor between
// exponentials, and by the moments' identity. Maxima, and sums of x, are what they were but for the
// order of additions. On a device of many threads the parts are those of its workgroups.
Graph form_online_reductions(Graph graph, const Capabilities& caps);

// Makes a Cat of many operands a Cat of Cats.
Graph nest_long_cats(Graph graph);

// Gives every output a buffer of its own: an output that is an argument, a constant, or an earlier
// output again becomes a copy; a reshape of a computed value is dropped, since the buffer is the
// same. A reduction of no elements becomes its identity, and the operands of a contraction are two
// values.
Graph materialize_outputs(Graph graph);

// Splits long reductions with too few results to keep the device busy into partial results, which
// are stored, and a reduction of those (a second kernel), or where workgroups combine atomically,
// into parts for these; on cores also those of long rows element by element, in strips of a few
// rows that are read side by side.
Graph split_reductions(Graph graph, const Capabilities& caps);

}  // namespace rune::graph
