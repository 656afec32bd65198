#pragma once

#include "graph/node.h"

namespace rune::graph {

// Computes what does not depend on arguments, by the reference evaluation of alu/eval.h:
//   - elementwise operations, Cast and Bitcast of constants of one value, which become such a
//   constant
//     (Const_Scalar, Reshape to sizes 1, Expand), and those of Vconst, which become a Vconst;
//   - movement of a constant of one value, and a Cat of equal ones;
//   - reductions of such a constant: Max and Min, and the sum of integers.
// Nodes that nothing uses afterwards are dropped. Linear.
Graph fold_constants(const Graph& graph);

}  // namespace rune::graph
