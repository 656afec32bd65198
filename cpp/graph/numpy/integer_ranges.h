// Which integers the values of a traced graph can be.
#pragma once

#include <optional>
#include <vector>

#include "graph/numpy/operands.h"

namespace rune::graph::numpy {

// The least and the greatest element of an integer or bool value, as far as its nodes tell. Ufuncs
// of int64 that may leave 64 bits give none, nor does what is computed from them: there, int64
// wraps and Python's integers do not.
std::optional<IntegerRange> integer_range(TracedGraph& t, Value x);

// Whether an element of x, integers or what they are converted to, is not known to differ from 0.
bool may_be_zero(TracedGraph& t, const Operand& x);

// Whether the dtype of integers is known to hold each element of x, an integer or bool value.
bool is_known_to_fit(TracedGraph& t, const Operand& x, DType dtype);

// Called when an outermost loop has ended, with the Carries of Python integers of its loops.
// Returns the position of one that is not known to keep within 64 bits, computed as Python computes
// it; the number of carries if that is one of t.must_fit, which are forgotten.
std::optional<size_t> find_unbounded(TracedGraph& t, const Operands& carries);

}  // namespace rune::graph::numpy
