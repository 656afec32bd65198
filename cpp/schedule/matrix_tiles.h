// Contractions by matrix operations: which tiles of the result a SIMD-group computes.
#pragma once

#include "schedule/iteration.h"

namespace rune::schedule {

// Chooses everything that map_axes does, for a kernel of one contraction with any elementwise
// operations around it, on a device with a matrix operation for its dtypes. Operands that the kernel
// widens are multiplied as they are where the operation does that. Returns false, changing nothing, if
// the kernel is no such contraction or smaller than a tile.
bool map_matrix_contraction(const Graph& graph, const Capabilities& caps, Kernel& kernel);

// What is wrong with a kernel's MatrixPlan, whose axes exist.
std::vector<std::string> verify_matrix_plan(const Graph& graph, const Kernel& kernel);

}  // namespace rune::schedule
