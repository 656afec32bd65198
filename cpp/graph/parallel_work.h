// The amount of work that keeps a device busy. The passes that split long reductions, scans and
// scatters use it, and so does the scheduler, which must make the same decisions.
#pragma once

#include "graph/node.h"
#include "types/capabilities.h"

namespace rune::graph {

// The number of operands' elements that each element of a reduction or contraction combines; 1 for
// other nodes.
double reduced_elements(const Graph& graph, const Node& node);

// Whether a reduction of this shape has so many elements that it may be worth dividing.
bool is_long_reduction(const Shape& from);

// Whether a reduction from one shape to another has so many elements and so few results that a part
// of the device would be idle if a workgroup computed each result.
bool leaves_device_idle(const Shape& from, const Shape& to, const Capabilities& caps);

// The number of parts into which to split such a reduction on a device of many threads.
int64_t parts_of_grid(const Capabilities& caps);

// Whether workgroups may combine partial results by an atomic operation of the device. This is so
// only on a device of many threads, and only if the order does not matter: for integers, which
// wrap, and for extremes. The error of a sum of floats would differ from run to run.
bool combines_atomically(ReduceOp op, DType dtype, const Capabilities& caps);

// Whether a Scatter's updates run in parallel, by atomic operations: on a device of many threads
// that has them.
bool updates_atomically(const Scatter& scatter, DType dtype, const Capabilities& caps);

}  // namespace rune::graph
