// Values of a kernel that are known before it runs.
#pragma once

#include <optional>
#include <vector>

#include "lower/instr.h"

namespace rune::lower {

// The lanes of a value that is computed from constants only, by a few instructions. Returns nothing
// for other values.
std::optional<std::vector<Scalar>> constant_lanes(const Kernel& kernel, Var v);

}  // namespace rune::lower
