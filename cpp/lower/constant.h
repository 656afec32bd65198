// Values of a kernel that are known without running it.
#pragma once

#include <optional>
#include <vector>

#include "lower/instr.h"

namespace rune::lower {

// The lanes of a value computed from constants alone; nothing if it is not, or takes more than a
// few instructions.
std::optional<std::vector<Scalar>> constant_lanes(const Kernel& kernel, Var v);

}  // namespace rune::lower
