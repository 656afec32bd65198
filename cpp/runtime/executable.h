// A compiled program: launches in order over a table of buffers.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/device.h"

namespace rune::runtime {

// Where a kernel's argument lives.
struct Slot {
  enum class Kind : uint8_t { Input, Output, Temporary, Constant } kind = Kind::Input;
  int64_t index = 0;   // of Input, Output, Constant
  int64_t offset = 0;  // bytes into the arena, of Temporary; bytes into the buffer otherwise
};

struct Step {
  std::shared_ptr<Program> program;
  std::vector<Slot> arguments;
};

// Immutable once built; safe to run from several threads at once (each run has its own arena).
class Executable {
 public:
  std::shared_ptr<Device> device;
  std::vector<Step> steps;
  size_t arena_bytes = 0;
  std::vector<std::vector<uint8_t>> constants;

  // Runs every step in order; `inputs` and `outputs` are memory of the device, aligned to their
  // dtype. Returns when the launches have been issued; `device->synchronize()` waits.
  void run(std::span<void* const> inputs, std::span<void* const> outputs,
           std::span<const int64_t> vars = {}) const;
};

}  // namespace rune::runtime
