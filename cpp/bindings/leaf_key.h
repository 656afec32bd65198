// What of the arguments of a call decides which program runs.
#pragma once

#include <span>
#include <string>

#include "bindings/bindings.h"

namespace rune::bindings {

// Appends to the key what decides of one argument: dtype, shape and device of arrays, dtype of
// NumPy scalars, the type of Python ints and floats. False, and nothing appended, for a static
// value. The sizes of the `dynamic` axes of an array do not decide, unless one is 0; false for an
// array that lacks such an axis.
bool append_leaf_key(py::handle leaf, std::string& key, std::span<const int64_t> dynamic = {});

}  // namespace rune::bindings
