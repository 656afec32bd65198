// Runs a kernel by interpreting it. The interpreter defines what the Lowered IR means.
#pragma once

#include <limits>
#include <memory>
#include <span>

#include "lower/instr.h"

namespace rune::lower {

// The memory of a Define_Global.
struct Memory {
  static constexpr int64_t kAsDefined = std::numeric_limits<int64_t>::max();
  void* data = nullptr;
  int64_t size = 0;  // elements
};

struct InterpreterOptions {
  bool check_races = true;
  // Runs groups, and threads between barriers, from the last to the first.
  bool reverse_order = false;
};

namespace interpreter {
struct Program;
}

// A kernel decoded for interpretation. It is immutable; several threads may run it at the same
// time.
class Interpreter {
 public:
  // Throws InternalError if verify_structure finds violations, UserError(Unsupported) for Custom.
  explicit Interpreter(Kernel kernel);
  // Runs all workgroups. `globals` has one memory for each Define_Global, by index; at most the
  // Define_Global's size is accessible. `vars` has the values of the kernel's symbolic variables
  // within their bounds, in the order of their first definitions. The Local and Private memory of
  // each group is NaN (floats) or bytes 0xa5 at first.
  //
  // Throws UserError(Runtime) that names the kernel and the instruction for
  //  - an access out of bounds,
  //  - a barrier that not all threads of a group reach, or different barriers that they reach,
  //  - two threads of a group that access the same element between barriers if one of them writes,
  //  - two groups that access the same element if one of them writes.
  // Two writes of equal bits are no race, because the value does not depend on their order.
  void run(std::span<const Memory> globals, std::span<const int64_t> vars = {},
           const InterpreterOptions& options = {}) const;

 private:
  std::shared_ptr<const interpreter::Program> program_;
};

}  // namespace rune::lower
