// What is recorded while a profile is taken, for Python.
#pragma once

#include "bindings/bindings.h"

namespace rune::bindings {

void bind_profile(py::module_& m);

}  // namespace rune::bindings
