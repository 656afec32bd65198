// The passes from graph to graph, in the order in which they run.
#pragma once

#include <string>
#include <vector>

#include "graph/node.h"
#include "types/capabilities.h"

namespace rune::graph {

// --- From source nodes to core nodes. `device` is the program's; "cpu" is "cpu:0".

// Makes complex values pairs of real ones, and Complex, Real and Imag nodes nothing. A complex
// argument, output, or operand or result of a function of the host becomes an array of the same
// memory, with a further last axis of the two parts; a Contract one Contract of real numbers; a
// Cast of each part; all other nodes on complex values one node for each part. It runs first: of
// the others none knows complex numbers. Throws UserError(Unsupported) for a Custom or Bitcast of
// complex values. Linear.
Graph split_complex(const Graph& graph);

// Takes contractions out of loops: where an iteration multiplies a row of one array, which the
// counter selects, by another array, or by a part of it that grows or shrinks with the counter, and
// the loop changes neither, one contraction before the loop computes the results of all iterations,
// and an iteration reads its part. Only where that reads less memory, at least 40 % of the results
// are used, and they are not many more than the operands' elements. It runs before form_loops,
// after which there are no loops.
Graph hoist_contractions(Graph graph);

// Makes the iterations of a loop elements of a further axis, if none depends on one before it: each
// writes boxes of its own of the arrays that the loop carries, side by side along an axis, and
// reads of these only what it writes itself or what no iteration before has written. The counter
// may decide the boxes' limits along other axes: a mask says what an iteration writes. What a body
// computes for an iteration is then computed for all of them by threads side by side: a convolution
// written as loops over its results is one reduction of windows, the copy of a triangle one kernel.
// On cores, only where iterations one by one fill no vectors. Loops of which a node cannot be told
// for all iterations together stay. It runs before form_loops, after which there are no loops.
Graph batch_iterations(Graph graph, const Capabilities& caps);

// Divides the rows of what outermost loops carry into blocks, where an iteration does not mix rows:
// a simulation of many paths, a filter along the first axis of many columns. A loop over blocks
// goes around the loop, whose iterations then find a block in a core's first cache, and cores share
// the blocks. Rows that are left over have a loop of their own, and so has what has no rows. On
// cores only. It runs before form_loops, after which there are no loops.
Graph block_loops(Graph graph, const Capabilities& caps);

// Makes outermost loops Loop_Nests where a device of cores is better off with loops: where there
// are loops in it, or an iteration is short. Other loops become their iterations, one after the
// other, and Updates outside of Loop_Nests selections by masks. It runs first, since the ranges of
// loops may be in terms of the counters of others, but of nothing else that is known only when a
// program runs. Throws InternalError for a range in terms of a Define_Var.
Graph form_loops(const Graph& graph, const Capabilities& caps);

// Makes writes values: Assign and Buffer nodes become selections by masks.
//
// A Buffer, an argument or another value that an Assign writes, directly or through movement, is a
// place: what comes after the Assign in the graph's order and reads the place or a movement of it
// sees the written elements, what comes before does not, and outputs come last. The result of an
// Assign is a value, which later writes do not change; as the target of an Assign it stands for its
// place. An Assign that neither an output nor a Sink reaches writes nothing. Memory of arguments is
// never written: the new contents are values.
//
// Throws what check_devices throws; UserError(Unsupported) for a write
// through Expand or View; UserError(Value) for a Buffer that is read before it is fully assigned.
Graph functionalize(const Graph& graph, const std::string& device);

// Throws UserError(Unsupported) for a value on a device of another kind than the program's.
void check_devices(const Graph& graph, const std::string& device);

// Brings values to where they are used: a Copy stays where devices differ, and comes before a node
// whose operands are on several, except for constants. Outputs, and the operands of user's
// operations, end up on the program's device. A Multi of shards on several devices stays in shards
// for elementwise nodes, reductions, Permute and Expand of it; else it is a Cat along its axis, or
// its first real shard. Shards that are not real are zeros. To run after functionalize.
Graph place_on_devices(Graph graph, const std::string& device);

// Makes all nodes core nodes, by one rule a kind:
//   Threefry             Threefry2x32-20 as 32-bit arithmetic on its two words
//   Wmma                 Cast, Contract and a sum
//   Shuffle              Shrink, Flip and Cat; a Gather if there are many runs of lanes
//   Vectorize            Reshape and Cat
//   Index                a Gather of the reshaped source, where the third operand is true
//   Valid, Buffer_View   a View of true, a Shrink
//   Bind, Unique         the constant
//   Kernel               Contiguous
//   Detach, Contiguous_Backward, Fuse, Unroll, Noop of an operand: the operand
//   Device, Noop         as operands: the array of no elements that they infer; so is a Sink, which
//                        stays beside
// and makes core nodes simpler:
//   Custom               the same with the source for this target only; without one, a call to its
//                        reference. `languages` are those of the target (Capabilities::languages)
//   Scatter              the same with indices of one dimension; nothing where it does nothing
//   Scan                 the same; of one element, or none, arithmetic
//   Gather               of a source without elements: no elements
// To run after place_on_devices. Throws UserError(Unsupported) for a Custom with neither a source
// in one of the languages nor a reference; UserError(Value) for a Custom whose operands have other
// shapes than its result and for a call with two lists of operands; UserError(Index) for a Gather
// of elements from none.
using Languages = std::vector<std::string>;
Graph decompose_nodes(const Graph& graph, const std::string& device, const Languages& languages);

// --- Less to compute. These and all later passes take core nodes only.

// Computes what does not depend on arguments, by the reference evaluation of alu/eval.h:
// elementwise operations, Cast and Bitcast of constants of one value, which become such a constant
// (Builder::full), and those of Vconst, which become a Vconst; movement of a constant of one value,
// and a Cat of equal ones; of reductions of such a constant Max, Min, and the sum of integers.
// Nodes that nothing uses afterwards are dropped. Linear.
Graph fold_constants(const Graph& graph);

// Applies algebraic rules until none applies, then drops nodes that nothing uses. Every rule is
// exact: equal bits for NaN, infinities, -0.0 and integers that wrap (of NaN, only that it is one);
// sums and products may be reordered across reductions only. The rules are listed in rules_*.cpp
// by the kind of their root. Near-linear: each sweep is, and a graph takes a few.
Graph simplify(const Graph& graph);

// Makes nodes with the same payload, operands and metadata one node: the first of them. Operands of
// commutative operations count as equal in either order. Never merged: Custom, Sink. Linear.
Graph eliminate_common_subexpressions(const Graph& graph);

// Drops the nodes that neither an output nor a Sink reaches, and renumbers the rest in order.
// Placeholders stay, since they are the program's arguments. A write whose Assign is not reached is
// dropped too: what must happen has to be an output or an operand of a Sink. Linear.
Graph eliminate_dead_code(const Graph& graph);

// --- Work for the whole device.

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

// Splits contractions into products of parts of their sums, which are stored, and the sum of those:
// on a device of many threads, contractions whose result has too few blocks for all workgroups, and
// long sums; on cores, long dot products. On a grid, products of a vector by a matrix whose rows
// the sums go down become reductions of products, which split_reductions splits.
Graph split_contractions(Graph graph, const Capabilities& caps);

// Sums of exp(x - max x), of x - c and of (x - c)^2, where c depends on the sum of x, read x a
// second time once its first reduction is known. Where x does not stay in cache meanwhile, both
// reductions are taken of parts that do, and their results merged: by a factor between
// exponentials, and by the moments' identity. Maxima, and sums of x, are what they were but for the
// order of additions. On a device of many threads the parts are those of its workgroups.
Graph form_online_reductions(Graph graph, const Capabilities& caps);

// Splits long reductions with too few results to keep the device busy into partial results, which
// are stored, and a reduction of those (a second kernel), or where workgroups combine atomically,
// into parts for these; on cores also those of long rows element by element, in strips of a few
// rows that are read side by side.
Graph split_reductions(Graph graph, const Capabilities& caps);

// Makes a Cat of many operands a Cat of Cats.
Graph nest_long_cats(Graph graph);

// --- Memory.

// Gives every output a buffer of its own: an output that is an argument, a constant, or an earlier
// output again becomes a copy; a reshape of a computed value is dropped, since the buffer is the
// same. Constants that functions of the host read are stored, and the operands of a contraction are
// two values. Sharing of equal nodes would undo this.
Graph materialize_outputs(Graph graph);

}  // namespace rune::graph
