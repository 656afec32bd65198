// Checks a kernel's invariants.
#pragma once

#include <string>
#include <vector>

#include "lower/instr.h"

namespace rune::lower {

// Returns all violations, each with the instruction's text. There are none if the kernel is valid.
// It finds
//  - operands that do not dominate their use, or have the wrong number, types or lanes,
//  - a Range or If that is not nested or not closed,
//  - stores to read-only memory,
//  - constant indices out of bounds, if they are unmasked and outside of any If,
//  - collective instructions in an If or Range whose condition or bound depends on the thread,
//  - globals that are not numbered 0..n-1, and memory defined inside a Range or If,
//  - a Special whose bound is less than the launch's size.
std::vector<std::string> verify(const Kernel& kernel);

// Returns the same violations, except those of constant indices and of collective instructions,
// which the interpreter checks at run time.
std::vector<std::string> verify_structure(const Kernel& kernel);

// For each instruction, whether its value and whether its execution may differ between the threads
// of a workgroup. The kernel's structure must be valid.
struct ThreadDependence {
  std::vector<bool> value;
  std::vector<bool> execution;
};
ThreadDependence thread_dependence(const Kernel& kernel);

}  // namespace rune::lower
