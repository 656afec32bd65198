// NumPy's reductions, and products that are summed over axes.
#pragma once

#include <string>
#include <string_view>

#include "graph/numpy/operands.h"

namespace rune::graph::numpy {

// sum, prod, max, min, any, all.
Operand reduce(TracedGraph& t, std::string_view name, const Operand& x, const Axes& axes,
               bool keepdims, std::optional<DType> dtype = std::nullopt);
// For each element, the reduction (add, prod, max, min) of the elements up to and including it
// along an axis >= 0.
Operand scan(TracedGraph& t, ReduceOp op, const Operand& x, int64_t axis);

// A Threefry node with one key for all counters.
Operand threefry(TracedGraph& t, const Operand& counter, const Operand& key);

// The products of a's and b's elements, as einsum computes them. `la`, `lb` and `out` have a letter
// for each axis of a, b and the result. Axes with one letter run together. Axes whose letter is not
// in `out` are summed over. The letters of an operand differ. Sizes of 1 broadcast. Errors name
// `op`.
Operand contract(TracedGraph& t, const std::string& op, const Operand& a, const std::string& la,
                 const Operand& b, const std::string& lb, const std::string& out);
Operand matmul(TracedGraph& t, const Operand& a, const Operand& b);

}  // namespace rune::graph::numpy
