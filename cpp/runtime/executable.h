// A compiled program: steps in order over a table of buffers.
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

// Where a step's argument lives.
struct Slot {
  enum class Kind : uint8_t { Input, Output, Temporary, Constant } kind = Kind::Input;
  int64_t index = 0;   // of Input, Output, Constant
  int64_t offset = 0;  // bytes into the arena, of Temporary; bytes into the buffer otherwise
  int device = 0;      // whose memory it is, of Temporary and Constant
};

struct Launch {
  std::shared_ptr<Program> program;
  std::vector<Slot> arguments;
  std::vector<int64_t> vars{};  // its own, which the program takes after those of the run
};

// Copies bytes within a device's memory, or from one device's to another's.
struct Memory_Transfer {
  Slot destination;
  Slot source;
  size_t bytes = 0;  // the two may overlap
  int from = 0, to = 0;
};

// Waits until these devices have run all earlier steps; the program's, if there are none.
struct Synchronization {
  std::vector<int> devices;
};

// Calls a function of the host on the arguments' memory, after all earlier steps have run.
struct Host_Callback {
  std::string name;
  std::function<void(std::span<void* const>)> function;
  std::vector<Slot> arguments;
};

using Step = std::variant<Launch, Memory_Transfer, Synchronization, Host_Callback>;

// Immutable once prepared; safe to run from several threads at once (each run has its own arena).
class Executable {
 public:
  static constexpr double kUnknown = std::numeric_limits<double>::infinity();

  std::shared_ptr<Device> device;              // number 0: has the inputs and outputs
  std::vector<std::shared_ptr<Device>> peers;  // numbers 1, 2, ...
  std::vector<Step> steps;
  size_t num_inputs = 0;
  size_t num_outputs = 0;
  size_t arena_bytes = 0;                       // on each device
  double estimated_ns = kUnknown;               // of one run
  std::vector<std::vector<uint8_t>> constants;  // bytes

  // Throws InternalError if a step names a slot that does not exist or a range outside it. To be
  // called before prepare(), which calls it, too.
  void validate() const;

  // Validates, and moves the constants to the device's memory: `constants` is empty then. Call
  // once, after building and before the first run.
  void prepare();

  // Runs every step in order; `inputs` and `outputs` are memory of the device, aligned to their
  // dtype. Returns when the launches have been issued; when they have run, if the program has
  // temporaries that the allocator could not free before. `device->synchronize()` waits. Throws
  // what a step throws; later steps have not run then.
  void run(std::span<void* const> inputs, std::span<void* const> outputs,
           std::span<const int64_t> vars = {}) const;

 private:
  Device& at(int number) const { return number == 0 ? *device : *peers[number - 1]; }
  void synchronize() const;

  struct Run;
  std::vector<std::vector<std::shared_ptr<void>>> device_constants_;  // by device, by index
};

}  // namespace rune::runtime
