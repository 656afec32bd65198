// Finds the ranges of integer values of a traced graph.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/numpy/operands.h"

namespace rune::graph::numpy {

// Bounds of the elements of an integer or bool value, as far as its nodes tell. Nothing for ufuncs
// of int64 whose results may not fit 64 bits, nor for values that are computed from them: there,
// int64 wraps and Python's integers do not.
std::optional<IntegerRange> integer_range(TracedGraph& t, Value x);

// Whether an element of x may be 0. The elements are integers, or are converted from integers.
bool may_be_zero(TracedGraph& t, const Operand& x);

// Whether the dtype of integers is known to hold each element of x, an integer or bool value.
bool is_known_to_fit(TracedGraph& t, const Operand& x, DType dtype);

// Reports Python integers that may not fit 64 bits. `position` is the position of a carried one
// among the carries, or the number of carries if none is carried. `locations` are those of the
// operations whose operands fit 64 bits and whose results may not.
struct Unbounded {
  size_t position = 0;
  std::vector<std::string> locations;
};

// Called when an outermost loop has ended, with the Carries of Python integers of its loops.
// Returns nothing if all of them, and all of t.must_fit, fit 64 bits; the ranges of the loops'
// results are then known. Clears t.must_fit.
std::optional<Unbounded> find_unbounded(TracedGraph& t, const Operands& carries);

}  // namespace rune::graph::numpy
