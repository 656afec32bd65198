// Gives Python the records of a profile.
#pragma once

#include "bindings/bindings.h"
#include "runtime/profile.h"

namespace rune::bindings {

// The fields of a step, by name.
py::dict fields_of(const runtime::StepInfo& info);

void bind_profile(py::module_& m);

}  // namespace rune::bindings
