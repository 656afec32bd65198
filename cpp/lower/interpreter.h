// Runs a kernel by interpreting it: the living definition of the Lowered IR.
#pragma once

#include <span>

#include "lower/instr.h"

namespace rune::lower {

// Memory behind one Define_Global.
struct Memory {
  void* data = nullptr;
  int64_t size = 0;  // elements
};

struct InterpreterOptions {
  bool check_races = true;
  bool reverse_order = false;  // run groups, and threads between barriers, from the last to the first
};

// Runs all workgroups. `globals` holds one memory per Define_Global, by index; `vars` the values of
// the kernel's symbolic variables, in order of first definition. Throws UserError(Runtime) that names
// the kernel and the instruction for: an access out of bounds, a barrier that not all threads of a
// group reach (or at which they differ), two threads of a group that access the same element between
// barriers, one of them writing, and two groups of which one writes an element that the other
// accesses.
void interpret(const Kernel& kernel, std::span<const Memory> globals, std::span<const int64_t> vars = {},
               const InterpreterOptions& options = {});

}  // namespace rune::lower
