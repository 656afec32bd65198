#pragma once

#include <string>
#include <vector>

#include "graph/node.h"

namespace rune::graph {

// Rewrites the nodes that no kernel computes as such into nodes that kernels do:
//   Threefry             Threefry2x32-20 as 32-bit arithmetic on its two words
//   Wmma                 Cast, Contract and a sum
//   Gep                  Shrink, Flip and Cat; a Gather if there are many runs of lanes
//   Bind, Unique         the constant
//   Multi                Cat along its axis, or its first real shard; shards not real are zeros.
//                        On several devices, what follows shard by shard stays in shards (shards.h)
//   Custom               the same with the source for this target only; without one, a call to its
//                        reference
//   Host_Callback        the same of operands on the program's device
//   Assign, Buffer       selection by masks (below)
//   Scatter              the same with indices of one dimension; nothing where it does nothing
//   Scan                 the same; of one element, or none, arithmetic
//   Gather, Index        of a source without elements: no elements, or zeros that are masked
//   Device, Sink, Noop   as operands: the array of no elements that they infer; a Sink stays beside
//   Detach, Contiguous_Backward, Noop of an operand: the operand
// Fuse, Unroll and Kernel stay: they tell the scheduler what to do with their operand. Outputs end
// up on the program's device, `device` ("cpu" is "cpu:0"); a Copy stays where devices differ, and
// comes before a node whose operands are on several, except for constants.
//
// Assign. A Buffer, an argument or another value that an Assign writes, directly or through
// movement, is a place: what comes after the Assign in the graph's order and reads the place or a
// movement of it sees the written elements, what comes before does not, and outputs come last. The
// result of an Assign is a value, which later writes do not change; as the target of an Assign it
// stands for its place. An Assign that neither an output nor a Sink reaches writes nothing, as in
// eliminate_dead_code. Memory of arguments is never written: the new contents are values.
//
// `languages` are those of the device (Capabilities::languages).
//
// Throws UserError(Unsupported) for a Custom with neither a
// source in one of the languages nor a reference, a value on a device of another kind and a write
// through Expand or View; UserError(Value) for a Custom whose operands have other shapes than its
// result, for a call with two lists of operands and for a Buffer that is read before it is fully
// assigned; UserError(Index) for a Gather of elements from none.
using Languages = std::vector<std::string>;
Graph decompose_nodes(const Graph& graph, const std::string& device, const Languages& languages);

}  // namespace rune::graph
