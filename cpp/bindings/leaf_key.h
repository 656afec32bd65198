// What of the arguments of a call decides which program runs.
#pragma once

#include <string>

#include "bindings/bindings.h"

namespace rune::bindings {

// Appends to the key what decides of one argument: dtype, shape and device of arrays, dtype of
// NumPy scalars, the type of Python ints and floats. False, and nothing appended, for a static
// value.
bool append_leaf_key(py::handle leaf, std::string& key);

}  // namespace rune::bindings
