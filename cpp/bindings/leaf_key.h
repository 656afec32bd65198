// The part of a call's key that one argument contributes.
#pragma once

#include <span>
#include <string>

#include "bindings/bindings.h"

namespace rune::bindings {

// Appends the key of one argument: dtype, shape and device of an array, dtype of a NumPy scalar,
// the type of a Python int or float. The sizes of an array's `dynamic` axes are left out, unless
// one is 0. Returns false and appends nothing for a static value and for an array that lacks a
// dynamic axis.
bool append_leaf_key(py::handle leaf, std::string& key, std::span<const int64_t> dynamic = {});

}  // namespace rune::bindings
