// Runs a kernel by interpreting it: the living definition of the Lowered IR.
#pragma once

#include <memory>
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
  bool reverse_order =
      false;  // run groups, and threads between barriers, from the last to the first
};

namespace interpreter {
struct Program;
}

// A kernel decoded for interpretation. Immutable: may run from several threads at once.
class Interpreter {
 public:
  // Throws InternalError if verify_structure finds violations, UserError(Unsupported) for Custom.
  explicit Interpreter(Kernel kernel);
  const Kernel& kernel() const;
  // As interpret.
  void run(std::span<const Memory> globals, std::span<const int64_t> vars = {},
           const InterpreterOptions& options = {}) const;

 private:
  std::shared_ptr<const interpreter::Program> program_;
};

// Runs all workgroups. `globals` holds one memory per Define_Global, by index, of which at most the
// Define_Global's size is accessible; `vars` the values of the kernel's symbolic variables, in
// order of first definition, each within its bounds. Local and Buffer memory of each group starts
// as NaN (floats) or bytes 0xa5. Throws UserError(Runtime) that names the kernel and the
// instruction for: an access out of bounds, a barrier that not all threads of a group reach (or at
// which they differ), two threads of a group that access the same element between barriers, one of
// them writing, and two groups of which one writes an element that the other accesses. Two writes
// of equal bits are no race: the element's value does not depend on their order.
void interpret(const Kernel& kernel, std::span<const Memory> globals,
               std::span<const int64_t> vars = {}, const InterpreterOptions& options = {});

}  // namespace rune::lower
