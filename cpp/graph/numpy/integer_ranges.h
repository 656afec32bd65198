// Finds the ranges of integer values of a traced graph.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/numpy/operands.h"

namespace rune::graph::numpy {

// The least and the greatest element of an integer or bool value, as far as its nodes tell. Ufuncs
// of int64 that may leave 64 bits give none, nor does what is computed from them: there, int64
// wraps and Python's integers do not.
std::optional<IntegerRange> integer_range(TracedGraph& t, Value x);

// Whether an element of x may be 0. x has integers, or numbers that were converted from integers.
bool may_be_zero(TracedGraph& t, const Operand& x);

// Whether the dtype of integers is known to hold each element of x, an integer or bool value.
bool is_known_to_fit(TracedGraph& t, const Operand& x, DType dtype);

// Python integers that may leave 64 bits if they are computed as Python computes them: the position
// of one that a loop carries (or the number of carries, if it is none of these), and the locations
// of operations whose operands keep within 64 bits and whose results may not.
struct Unbounded {
  size_t position = 0;
  std::vector<std::string> locations;
};

// Called when an outermost loop has ended, with the Carries of Python integers of its loops.
// Nothing if all of them, and all of t.must_fit, keep within 64 bits; the ranges of the loops'
// results are then known. Clears t.must_fit.
std::optional<Unbounded> find_unbounded(TracedGraph& t, const Operands& carries);

}  // namespace rune::graph::numpy
