// NumPy's functions that move elements: shapes, joins, padding.
#pragma once

#include "graph/numpy/operands.h"

namespace rune::graph::numpy {

Operand reshape(TracedGraph& t, const Operand& x, Shape shape);
Operand transpose(TracedGraph& t, const Operand& x, const Axes& axes);
Operand expand_dims(TracedGraph& t, const Operand& x, const Ints& axes);
Operand squeeze(TracedGraph& t, const Operand& x, const Axes& axes);
Operand broadcast_to(TracedGraph& t, const Operand& x, const Shape& shape);
// Without an axis, concatenates the flattened operands.
Operand concatenate(TracedGraph& t, const Operands& parts, std::optional<int64_t> axis,
                    std::optional<DType> dtype = std::nullopt);
Operand stack(TracedGraph& t, const Operands& parts, int64_t axis);
// Adds zeros, or false, around x.
Operand pad(TracedGraph& t, const Operand& x, const DimPairs& widths);
Operand diagonal(TracedGraph& t, const Operand& x, int64_t offset, int64_t axis1, int64_t axis2);
// result[..., i, ..., k] = x[..., i + k, ...], i along `axis` and k of `size` along a new last
// axis.
Operand windows(TracedGraph& t, const Operand& x, int64_t size, int64_t axis);

}  // namespace rune::graph::numpy
