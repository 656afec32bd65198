// Checks a kernel's invariants.
#pragma once

#include <string>
#include <vector>

#include "lower/instr.h"

namespace rune::lower {

// Every violation, each with the instruction's text: operands that do not dominate their use, Range
// and If not nested or not closed, wrong number or types of operands, lanes that do not fit, stores to
// read-only memory, constant indices out of bounds, Barrier under an If whose condition depends on
// the thread, globals not numbered 0..n-1. Empty if the kernel is valid.
std::vector<std::string> verify(const Kernel& kernel);

}  // namespace rune::lower
