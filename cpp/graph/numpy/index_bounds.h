// Makes checks, positions and slices of indices that are data.
#pragma once

#include "graph/numpy/operands.h"

namespace rune::graph::numpy {

// Adds a check that all elements of `at` are positions along an axis of this size, unless that is
// known. Errors call the axis `axis`.
void check_indices(TracedGraph& t, Value at, int64_t axis, const Dim& size);
// Converts integers to int64 positions. Negative ones count from the end of `size` elements.
Value counted_from_end(TracedGraph& t, Value at, const Dim& size);
// The position of element x[at] along an axis of this size, as a size in the body of the innermost
// loop; `at` is checked. Errors call the axis `axis`.
Dim bind_position(TracedGraph& t, const Operand& at, int64_t axis, int64_t size);
// The first position and the number of the elements x[start:stop] along an axis of this size, as
// sizes in the body of the innermost loop. Their sum is at most `size`, although their bounds alone
// do not say so.
Shape bind_slice(TracedGraph& t, const std::optional<Operand>& start,
                 const std::optional<Operand>& stop, int64_t size);
// b - a, if both are the same value plus constants.
std::optional<int64_t> constant_difference(const TracedGraph& t, const Operand& a,
                                           const Operand& b);

}  // namespace rune::graph::numpy
