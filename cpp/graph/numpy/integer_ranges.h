// Which integers the values of a traced graph can be.
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

// Whether an element of x, integers or what they are converted to, is not known to differ from 0.
bool may_be_zero(TracedGraph& t, const Operand& x);

// Whether the dtype of integers is known to hold each element of x, an integer or bool value.
bool is_known_to_fit(TracedGraph& t, const Operand& x, DType dtype);

// Python integers that are not known to keep within 64 bits, computed as Python computes them: the
// position of one that a loop carries, or the number of carries, and the locations of operations on
// integers that do, whose results may not.
struct Unbounded {
  size_t position = 0;
  std::vector<std::string> locations;
};

// Called when an outermost loop has ended, with the Carries of Python integers of its loops.
// Without a result, all of these and t.must_fit keep within 64 bits; the ranges of the loops'
// results are known from then on. t.must_fit is forgotten.
std::optional<Unbounded> find_unbounded(TracedGraph& t, const Operands& carries);

}  // namespace rune::graph::numpy
