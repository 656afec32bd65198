// Reads the arguments that Python passes to functions on graphs under construction.
#pragma once

#include <optional>

#include "bindings/bindings.h"
#include "bindings/graph_builder.h"
#include "graph/numpy/indexing.h"

namespace rune::bindings {

// Reads a Value, or a Python number as a literal. Throws UserError for anything else.
graph::numpy::Operand to_operand(py::handle x);
graph::numpy::Operands to_operands(const py::sequence& xs);
// Reads None, or the name of a kind of Python's numbers.
std::optional<Kind> weak_kind(const py::object& name);
// Reads index items: ints and Sizes, slices of them, None, Ellipsis, or a Value of integers.
graph::numpy::IndexItems to_index(const PyGraph& g, const py::sequence& items);
// Reads pairs of ints and Sizes.
graph::DimPairs to_dim_pairs(const PyGraph& g, const py::sequence& pairs);

}  // namespace rune::bindings
