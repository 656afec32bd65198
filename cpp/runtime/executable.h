// A compiled program: steps that run in order on a table of buffers.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/device.h"

namespace rune::runtime {

// The memory of a step's argument.
struct Slot {
  enum class Kind : uint8_t { Input, Output, Temporary, Constant } kind = Kind::Input;
  int64_t index = 0;   // number of the Input, Output or Constant
  int64_t offset = 0;  // bytes, into the arena for a Temporary, otherwise into the buffer
  int device = 0;      // for a Temporary or Constant: the device whose memory it is
  bool operator==(const Slot&) const = default;
};

// A launch of a program. A run has the variables that it is given, followed by those of its loops.
// The launch takes the variables with the numbers in `variables`, or by default all that the run is
// given, followed by the values `vars`.
struct Launch {
  std::shared_ptr<Program> program;
  std::vector<Slot> arguments;
  std::vector<int64_t> vars{};
  int device = 0;  // where it runs
  std::optional<std::vector<size_t>> variables = std::nullopt;
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

// Sets a variable of the run to the int64 in a slot's memory, after all earlier steps have run.
struct Read {
  size_t variable = 0;
  Slot from;
};

// A number plus multiples of variables of the run.
struct Affine {
  int64_t offset = 0;
  std::vector<std::pair<size_t, int64_t>> terms{};  // variable, factor
};

struct Body;

// Launches, copies within the device's memory, and loops of these with a fixed number of
// iterations. The device runs them all as one step.
struct Launch_Sequence {
  std::shared_ptr<Body> body;
  std::shared_ptr<Sequence> sequence;
};

// Runs steps for each number of a range. The variable `counter` holds the number. The loop ends
// before an iteration if the bool in `goes_on` is false.
struct Repeat {
  // Another body with the same number of steps, and the steps after the loop if this body would be
  // the next one.
  struct Turn {
    std::shared_ptr<Body> body, end;
  };
  size_t counter = 0;
  Affine start, stop;
  int64_t step = 1;
  std::optional<Slot> goes_on;
  std::shared_ptr<Body> body;
  std::vector<Turn> turns{};  // iterations run `body` and the bodies of these in turns

  // Iterations that the device runs as one step, or null: `num_together` iterations, or, if
  // `goes_on` is given, the whole loop (SequenceLoop).
  std::shared_ptr<Sequence> together = nullptr;
  int64_t num_together = 0;
};

using Step = std::variant<Launch, Launch_Sequence, Memory_Transfer, Synchronization, Host_Callback,
                          Read, Repeat>;

struct Body {
  std::vector<Step> steps;
};

// Immutable once prepared. Several threads may run it at the same time: each run has its own arena.
// The schedule's verifier checks that slots exist and that steps access nothing outside of them.
class Executable {
 public:
  static constexpr double kUnknown = std::numeric_limits<double>::infinity();

  std::shared_ptr<Device> device;              // number 0, with the inputs and outputs
  std::vector<std::shared_ptr<Device>> peers;  // numbers 1, 2, ...
  std::vector<Step> steps;
  size_t num_inputs = 0;
  size_t num_outputs = 0;
  size_t num_loop_variables = 0;   // of Repeats and Reads
  size_t arena_bytes = 0;          // on each device
  double estimated_ns = kUnknown;  // of one run
  std::vector<bool> streamed;      // by output: whether its memory must be aligned to 64 bytes
  std::vector<std::vector<uint8_t>> constants;  // bytes
  std::shared_ptr<const ProgramInfo> info;      // for profiles; null: this program is not in them

  // Moves `constants` to the devices' memory, which leaves the member empty, and joins launches to
  // sequences. Call it once, before the first run.
  void prepare();

  // Runs all steps in order. `inputs` and `outputs` are memory of the device, aligned to their
  // dtype. Returns when the launches have been issued, and `device->synchronize()` waits for them.
  // If the program has temporaries that the allocator cannot free earlier, it returns only when the
  // launches have run. If a step throws, later steps do not run. While a profile is taken, each
  // step waits for the one before.
  void run(std::span<void* const> inputs, std::span<void* const> outputs,
           std::span<const int64_t> vars = {}) const;

  // Whether a step uses the memory of this input.
  bool reads(size_t input) const;
  // Whether a step calls a function of the host, which may raise.
  bool calls_host() const;

 private:
  Device& at(int number) const { return number == 0 ? *device : *peers[number - 1]; }
  void synchronize() const;

  class Arenas;
  struct Run;
  size_t run_profiled(const Run& run, const std::vector<Step>& steps, size_t number) const;
  std::vector<std::vector<std::shared_ptr<void>>> device_constants_;  // by device, by index
};

}  // namespace rune::runtime
