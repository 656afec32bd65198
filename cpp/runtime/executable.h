// A compiled program: steps that run in order on a table of buffers.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "runtime/device.h"

namespace rune::runtime {

// The memory of a step's argument.
struct Slot {
  enum class Kind : uint8_t { Input, Output, Temporary, Constant } kind = Kind::Input;
  int64_t index = 0;   // of Input, Output, Constant
  int64_t offset = 0;  // bytes, into the arena for a Temporary, otherwise into the buffer
  int device = 0;      // of Temporary and Constant: the device whose memory it is
};

struct Launch {
  std::shared_ptr<Program> program;
  std::vector<Slot> arguments;
  std::vector<int64_t> vars{};  // further variables, which follow those of the run
  int device = 0;               // where it runs
};

// Launches that the device runs as one.
struct Launch_Sequence {
  std::vector<Launch> launches;
  std::shared_ptr<Sequence> sequence;
};

// Copies bytes within a device's memory, or from one device to another.
struct Memory_Transfer {
  Slot destination;
  Slot source;
  size_t bytes = 0;  // the two may overlap
  int from = 0, to = 0;
};

// Waits until these devices have run all earlier steps. An empty list stands for the program's
// device.
struct Synchronization {
  std::vector<int> devices;
};

// Calls a host function with the arguments' memory, after all earlier steps have run.
struct Host_Callback {
  std::string name;
  std::function<void(std::span<void* const>)> function;
  std::vector<Slot> arguments;
};

using Step = std::variant<Launch, Launch_Sequence, Memory_Transfer, Synchronization, Host_Callback>;

// Immutable once prepared. Several threads may run it at the same time: each run has its own arena.
// Slots exist, and what steps access lies within them: the schedule's verifier checks that.
class Executable {
 public:
  static constexpr double kUnknown = std::numeric_limits<double>::infinity();

  std::shared_ptr<Device> device;              // number 0, with the inputs and outputs
  std::vector<std::shared_ptr<Device>> peers;  // numbers 1, 2, ...
  std::vector<Step> steps;
  size_t num_inputs = 0;
  size_t num_outputs = 0;
  size_t arena_bytes = 0;                       // on each device
  double estimated_ns = kUnknown;               // of one run
  std::vector<std::vector<uint8_t>> constants;  // bytes
  std::shared_ptr<const ProgramInfo> info;      // for profiles; null: none have this program

  // Moves the constants to the devices' memory, which leaves `constants` empty, and makes sequences
  // of launches. Call it once, before the first run.
  void prepare();

  // Runs all steps in order. `inputs` and `outputs` are memory of the device, aligned to their
  // dtype. Returns when the launches have been issued; if the program has temporaries that the
  // allocator cannot free earlier, returns when they have run. `device->synchronize()` waits for
  // them. An exception of a step ends the run: later steps do not run. While a profile is taken,
  // each step waits for the one before.
  void run(std::span<void* const> inputs, std::span<void* const> outputs,
           std::span<const int64_t> vars = {}) const;

 private:
  Device& at(int number) const { return number == 0 ? *device : *peers[number - 1]; }
  void synchronize() const;
  void join_launches();

  struct Run;
  void run_profiled(const Run& run) const;
  std::vector<std::vector<std::shared_ptr<void>>> device_constants_;  // by device, by index
};

}  // namespace rune::runtime
