// Checks a kernel's invariants.
#pragma once

#include <string>
#include <vector>

#include "lower/instr.h"

namespace rune::lower {

// Every violation, each with the instruction's text: operands that do not dominate their use, Range
// and If not nested or not closed, wrong number or types of operands, lanes that do not fit, stores
// to read-only memory, constant indices out of bounds (unmasked and outside any If), collective
// instructions under an If or Range whose condition or bound depends on the thread, globals not
// numbered 0..n-1, memory defined inside a Range or If, a Special whose bound the launch exceeds.
// Empty if the kernel is valid.
std::vector<std::string> verify(const Kernel& kernel);

// The violations but for constant indices and barriers, which the interpreter checks as they run.
std::vector<std::string> verify_structure(const Kernel& kernel);

// By instruction: whether the value, or the execution of the instruction itself, may differ between
// the threads of a workgroup. The kernel's structure must be valid.
struct ThreadDependence {
  std::vector<bool> value;
  std::vector<bool> execution;
};
ThreadDependence thread_dependence(const Kernel& kernel);

}  // namespace rune::lower
