// The traces that run on this thread, and the place in the user's code.
#pragma once

#include "bindings/bindings.h"

namespace rune::bindings {

// Whether a trace runs on this thread: what is called becomes part of it.
bool is_tracing();

}  // namespace rune::bindings
