// The passes from graph to graph, in the order in which they run.
#pragma once

#include <string>
#include <vector>

#include "graph/node.h"
#include "types/capabilities.h"

namespace rune::graph {

// --- From source nodes to core nodes. `device` is the program's; "cpu" is "cpu:0".

// Replaces each complex value by two real ones. It runs first, because no other pass knows complex
// numbers.
// - A complex argument or output, and a complex operand or result of a host call, becomes an array
//   in the same memory with an additional last axis of the two parts.
// - A Contract becomes one Contract of real numbers.
// - Complex, Real and Imag nodes disappear.
// - Every other node on complex values becomes one node for each part.
// Throws UserError(Unsupported) for a Custom or Bitcast of complex values. Linear.
Graph split_complex(const Graph& graph);

// Takes contractions out of loops. It looks for iterations that multiply a row of one array, which
// the counter selects, by another array or by a part of it that grows or shrinks with the counter.
// If the loop changes neither array, one contraction before the loop computes the results of all
// iterations, and an iteration reads its part. The pass does so only if that reads less memory, at
// least 40 % of the results are used, and there are not many more results than elements of the
// operands. It runs before form_loops, after which there are no loops.
Graph hoist_contractions(Graph graph);

// Finds contractions of float32 and float64 that are written as other operations.
// - A sum of products of arrays that are repeated along different axes, `np.sum(a[:, :, None] *
//   b[None], axis=1)`, becomes a Contract. This needs factors that are stored or parts of what is.
// - A sum of Contracts of equally spaced parts of the same arrays, `x[0:n] @ w[0] + x[1:n + 1] @
//   w[1] + ...`, becomes a loop that adds them in the same order. batch_iterations makes one
//   Contract of such a loop.
Graph form_contractions(const Graph& graph);

// Removes a dependence between the iterations of an outermost loop, on a grid only. A loop may
// carry a number from the first iteration that has one, as the check of an index does. If nothing
// else makes its iterations depend on each other, the loop stores the numbers of all iterations
// instead, and the first one is found after the loop. The iterations can then run side by side. It
// runs before batch_iterations and form_loops, which make use of this.
Graph collect_first_values(Graph graph, const Capabilities& caps);

// Turns the iterations of a loop into elements of an additional axis, if no iteration depends on an
// earlier one. Threads then compute all iterations side by side. A convolution written as loops
// over its results becomes one reduction of windows. The copy of a triangle becomes one kernel.
// - Each iteration must write boxes of its own in the arrays that the loop carries. The boxes lie
//   side by side along one axis. Their limits along other axes may depend on the counter; a mask
//   then tells which elements an iteration writes.
// - In these arrays, an iteration may read only elements that it writes itself, and elements that
//   no earlier iteration has written.
// - A loop stays if a node of its body cannot be computed for all iterations together.
// - On cores, a loop stays if a single iteration fills vectors, unless it writes contractions of
//   parts of arrays from before the loop.
// A loop whose iterations only add contractions of such parts to the carried arrays becomes one
// contraction, which the iterations are a contracted axis of.
// It runs before form_loops, after which there are no loops.
Graph batch_iterations(Graph graph, const Capabilities& caps);

// Puts a loop over blocks of rows around an outermost loop, if its iterations do not mix the rows
// of the carried values: a simulation of many paths, or a filter along the first axis of many
// columns. The iterations then find a block in a core's first cache, and cores share the blocks.
// Rows that fill no block have a loop of their own, and so have carried values without rows. On
// cores only. It runs before form_loops, after which there are no loops.
Graph block_loops(Graph graph, const Capabilities& caps);

// Turns an outermost loop into a Loop_Nest or into its iterations, one after the other. On cores it
// becomes a Loop_Nest if it contains loops or its iterations are short. Updates outside of
// Loop_Nests become selections by masks. The range of a loop may depend on the counters of other
// loops, but on nothing else that is known only when a program runs. Throws InternalError for a
// range that depends on a Define_Var.
Graph form_loops(const Graph& graph, const Capabilities& caps);

// Replaces writes by values: Assign and Buffer nodes become selections by masks.
//
// A place is a Buffer, an argument or another value to which an Assign writes, directly or through
// movement. A node that reads the place, or a movement of it, sees the written elements if it comes
// after the Assign in the graph's order. Outputs come last. The result of an Assign is a value,
// which later writes do not change. If it is the target of another Assign, its place is written. An
// Assign that neither an output nor a Sink reaches writes nothing. The memory of arguments is never
// written, since the new contents are values.
//
// Throws as check_devices does. Throws UserError(Unsupported) for a write through Expand or View,
// and UserError(Value) for a Buffer that is read before it is fully assigned.
Graph functionalize(const Graph& graph, const std::string& device);

// Throws UserError(Unsupported) for a value on a device of another kind than the program's.
void check_devices(const Graph& graph, const std::string& device);

// Brings values to the devices where they are used. A Copy between different devices stays. A node
// whose operands are on several devices gets a Copy before it, except for constants. Outputs, and
// the operands of custom operations, end up on the program's device. Elementwise nodes, reductions,
// Permute and Expand of a Multi are computed shard by shard. For other nodes a Multi becomes a Cat
// along its axis, or its first real shard. Shards that are not real are zeros. It runs after
// functionalize.
Graph place_on_devices(Graph graph, const std::string& device);

// Replaces all source nodes by core nodes, by one rule for each kind:
//   Threefry             Threefry2x32-20 as 32-bit arithmetic on its two words
//   Wmma                 Cast, Contract and a sum
//   Shuffle              Shrink, Flip and Cat; a Gather if there are many runs of lanes
//   Vectorize            Reshape and Cat
//   Index                a Gather of the reshaped source, where the third operand is true
//   Valid, Buffer_View   a View of true, a Shrink
//   Bind, Unique         the constant
//   Kernel               Contiguous
//   Detach, Contiguous_Backward, Fuse, Unroll, Noop of an operand: the operand
//   Device, Noop         as operands: an array without elements, of the dtype and shape that
//                        inference gives. A Sink as an operand also becomes this, and the Sink
//                        itself stays
// It also makes core nodes simpler:
//   Custom               the same, with the source for this target only; if there is none, a call
//                        to its reference. `languages` are the target's (Capabilities::languages)
//   Scatter              a Scatter with indices of one dimension; the target if nothing is written
//   Scan                 arithmetic, if it has one element or none
//   Gather               an array without elements, if the source has none
// It runs after place_on_devices. Throws
// - UserError(Unsupported) for a Custom with neither a source in one of the languages nor a
//   reference,
// - UserError(Value) for a Custom whose operands have other shapes than its result, and for a host
//   call with two lists of operands,
// - UserError(Index) for a Gather of elements from a source without elements.
using Languages = std::vector<std::string>;
Graph decompose_nodes(const Graph& graph, const std::string& device, const Languages& languages);

// --- Simplification. These passes and all later ones take core nodes only.

// Computes nodes that do not depend on arguments, by the reference evaluation of alu/eval.h:
// - elementwise operations, Cast and Bitcast of constants of one value, which become such a
//   constant (Builder::full), and of Vconsts, which become a Vconst;
// - movement of a constant of one value, and a Cat of equal ones;
// - the reductions Max and Min of a constant of one value, and the sum of integers.
// Afterwards it drops the nodes that are unused. Linear.
Graph fold_constants(const Graph& graph);

// Applies algebraic rules until none applies, then drops nodes that nothing uses. Every rule is
// exact: it gives equal bits for infinities, -0.0 and integers that wrap, and NaN for NaN. Only
// reductions may have their sums and products reordered. The rules are listed in rules_*.cpp by the
// kind of their root. Near-linear: each sweep is linear, and a graph takes a few.
Graph simplify(const Graph& graph);

// Merges nodes with the same payload, operands and metadata into the first of them. Operands of
// commutative operations count as equal in either order. Custom and Sink are never merged. Linear.
Graph eliminate_common_subexpressions(const Graph& graph);

// Drops the nodes that neither an output nor a Sink reaches, and renumbers the rest in order.
// Placeholders stay, since they are the program's arguments. A write whose Assign is not reached is
// dropped as well; a write that must happen has to be an output or an operand of a Sink. Linear.
Graph eliminate_dead_code(const Graph& graph);

// --- Work for the whole device.

// Splits long scans with too few lines to keep the device busy into blocks along their axis. It
// reduces each block, scans the results, and scans the blocks beginning with these values. A sum of
// floats is then rounded differently than without blocks; the bound on its error is smaller. If
// only -0.0 came before a block, the block begins with 0.0.
Graph split_scans(Graph graph, const Capabilities& caps);

// Splits long Scatters that combine, if the target is small beside the updates. Each of several
// copies of the target takes its share of the updates, and the copies are combined. Cores then work
// side by side without atomic operations. Floats are added in another order, which depends on the
// device and not on the number of threads.
Graph split_scatters(Graph graph, const Capabilities& caps);

// Splits contractions with long sums: partial sums are stored and then added up. On a grid, it
// splits contractions whose result has too few blocks for all workgroups; on cores, long dot
// products. On a grid, the product of a vector and a matrix whose sums go down the rows becomes a
// reduction of products, which split_reductions splits.
Graph split_contractions(Graph graph, const Capabilities& caps);

// Computes two reductions in one pass over memory, although the second depends on the first: sums
// of exp(x - max x), of x - c and of (x - c)^2, where c depends on the sum of x. If x does not stay
// in the cache between the two, both are computed for parts of x that do. The results are merged by
// a factor between exponentials, or by the identity of moments. Maxima stay the same. Sums of x are
// added in another order. On a device of many threads, each workgroup has a part.
Graph form_online_reductions(Graph graph, const Capabilities& caps);

// Splits long reductions with too few results to keep the device busy. Partial results are stored
// and reduced by a second kernel, or workgroups combine them by atomic operations. On cores it also
// splits elementwise reductions of long rows into strips of a few rows, which are read side by
// side.
Graph split_reductions(Graph graph, const Capabilities& caps);

// Turns a Cat of many operands into a Cat of Cats.
Graph nest_long_cats(Graph graph);

// --- Memory.

// Gives every output a buffer of its own. An output that is an argument, a constant or an earlier
// output becomes a copy. A reshape of a computed value is dropped, because the buffer is the same.
// Constants that host calls read are stored. If both operands of a contraction are the same value,
// they become two values. Merging equal nodes afterwards would undo this.
Graph materialize_outputs(Graph graph);

}  // namespace rune::graph
