// The interface of backends: a Device with an Allocator and a Compiler, and the Programs that the
// Compiler makes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "runtime/profile.h"
#include "types/capabilities.h"
#include "types/dtype.h"
#include "types/matrix_product.h"

namespace rune::runtime {

// Allocates memory of a device. `allocate` throws UserError(Memory) if there is none, and never
// returns null for bytes > 0.
class Allocator {
 public:
  virtual ~Allocator() = default;
  virtual void* allocate(size_t bytes) = 0;
  virtual void deallocate(void* memory, size_t bytes) = 0;
  // Whether memory may be deallocated while launches that use it are running.
  virtual bool defers_frees() const { return false; }

  // Returns the memory that is kept for reuse to the system.
  virtual void trim() {}

  // Lets launches use host memory without a copy, until release(), which waits for them. Returns
  // false if that is impossible. The same memory may be adopted several times.
  virtual bool adopt(void* /*memory*/, size_t /*bytes*/) { return false; }
  virtual void release(void* /*memory*/) {}
};

// Memory of an allocator that is returned at the end of the scope. Null if it has no bytes.
class ScopedMemory {
 public:
  ScopedMemory(Allocator& allocator, size_t bytes)
      : allocator_(allocator),
        bytes_(bytes),
        memory_(bytes ? allocator.allocate(bytes) : nullptr) {}
  ~ScopedMemory() {
    if (memory_) allocator_.deallocate(memory_, bytes_);
  }
  ScopedMemory(const ScopedMemory&) = delete;
  void* get() const { return memory_; }

 private:
  Allocator& allocator_;
  const size_t bytes_;
  void* const memory_;
};

// A kernel's text in the target's language, and the facts about its launches.
struct KernelSource {
  std::string name;
  std::string text;
  std::string location;               // the user's line, "file.py:12"; empty if it is unknown
  int64_t grid = 1;                   // workgroups
  int64_t local = 1;                  // threads of a workgroup
  std::vector<DType> buffer_dtypes;   // by argument
  std::vector<int64_t> buffer_sizes;  // elements, by argument
  std::vector<bool> buffer_written;   // by argument
  int64_t scratch_bytes = 0;          // private to a workgroup
  // The estimated time of a launch. On cores: the time on one core, or 0 if other cores must not
  // help. On a grid: the time on the whole device without that of an empty launch, or 0 if unknown.
  double estimated_ns = 0;
  // Whether a launch may divide its threads, grid times local, into workgroups of any size.
  bool independent_threads = false;
  // Whether loads should move before stores, because the kernel has too few threads to hide the
  // latency of loads.
  bool needs_early_loads = false;
  // The product that the kernel computes, if the device's library computes it faster
  // (Capabilities::library_rates).
  std::optional<MatrixProduct> product = std::nullopt;
};

// The compiled kernel uses so many registers that its workgroups have too many threads. A kernel
// scheduled for at most `allowed()` threads in a workgroup may fit.
class ThreadLimitError : public UserError {
 public:
  ThreadLimitError(const std::string& message, int allowed)
      : UserError(ErrorKind::Runtime, message), allowed_(allowed) {}
  int allowed() const { return allowed_; }

 private:
  int allowed_;
};

// The arguments of a launch.
struct LaunchArguments {
  std::span<void* const> buffers;
  std::span<const int64_t> vars;
};

// A compiled kernel. Several threads may launch it at the same time.
class Program {
 public:
  virtual ~Program() = default;
  virtual void launch(const LaunchArguments& arguments) = 0;
  // Whether the program may be part of a Sequence.
  virtual bool joins_sequences() const { return false; }
};

struct SequenceLoop;

// A program to launch, or a loop. If both are null: a copy within the device's memory, from the
// second argument to the first.
struct SequencePart {
  std::shared_ptr<Program> program;
  size_t bytes = 0;
  std::shared_ptr<const SequenceLoop> loop = nullptr;
};

// A loop that the device runs. Each iteration runs the body of one turn. The turns alternate: the
// first follows the last. The loop has one argument, a bool in memory, and one variable, the
// largest number of iterations. It ends before an iteration if the bool is false or if that many
// iterations have run. It then runs `end` of the turn that would be next. In a launch, the
// arguments of the turns' parts follow the loop's own.
struct SequenceLoop {
  struct Turn {
    std::vector<SequencePart> body, end;
  };
  std::vector<Turn> turns;
};

// Parts that a device runs together, in order, with fewer commands than one for each part.
class Sequence {
 public:
  virtual ~Sequence() = default;
  // Runs the parts, with arguments for each part. Several threads may call it at the same time.
  virtual void launch(std::span<const LaunchArguments> arguments) = 0;
};

class Compiler {
 public:
  virtual ~Compiler() = default;
  // Returns one program for each source, in order. Throws UserError(Runtime) with the compiler's
  // message, or ThreadLimitError.
  virtual std::vector<std::shared_ptr<Program>> compile(std::span<const KernelSource> sources) = 0;
};

// How other libraries in the process use the device's memory (DLPack).
class Interchange {
 public:
  virtual ~Interchange() = default;
  // DLPack's number for this type of device, and the device's number.
  virtual std::pair<int, int> device() const = 0;
  // The stream that launches run in. Streams are numbered as in DLPack.
  virtual intptr_t stream() const = 0;
  // Makes later commands of `stream` wait for all launches so far.
  virtual void release_to(intptr_t stream) = 0;
  // Makes later launches wait for the commands that `stream` has so far. The host does not wait.
  virtual void run_after(intptr_t stream) = 0;
  // Waits until all commands in `stream` that may use the device's memory have run.
  virtual void wait_for(intptr_t stream) = 0;
  // Calls `function` some time after all launches so far have run.
  virtual void when_done(std::function<void()> function) = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual const std::string& name() const = 0;
  virtual const Capabilities& capabilities() const = 0;
  virtual Allocator& allocator() = 0;
  virtual Compiler& compiler() = 0;
  // Makes a sequence of parts whose programs belong to this device and may join sequences. Null if
  // running them one by one is better.
  virtual std::unique_ptr<Sequence> sequence(std::span<const SequencePart>) { return nullptr; }
  // Whether sequences may have loops.
  virtual bool runs_loops() const { return false; }
  // Whether the device's memory is the host's, so that both use the same addresses.
  virtual bool addresses_host_memory() const { return false; }
  // The alignment, in bytes, that programs need of memory.
  virtual size_t alignment() const { return 1; }
  // Null if other libraries cannot use the device's memory.
  virtual Interchange* interchange() { return nullptr; }
  // Waits for all launches. Throws the first error of a launch.
  virtual void synchronize() = 0;
  // Calls `launch` and waits for its launches. Returns how long the device took, in ns, or nothing
  // if the device cannot measure it. Throws the errors of `launch` and of synchronize().
  virtual std::optional<double> time(const std::function<void()>& launch) {
    launch();
    synchronize();
    return std::nullopt;
  }
  // Copy between the host's and the device's memory, after all earlier launches that use the
  // latter. copy_out throws the error of a launch that should have written the memory.
  virtual void copy_in(void* device, const void* host, size_t bytes) = 0;
  virtual void copy_out(void* host, const void* device, size_t bytes) = 0;
  // Copies within the device's memory, after all earlier launches.
  virtual void copy(void* to, const void* from, size_t bytes) = 0;
  // Copies from another device's memory directly, after all earlier launches on both devices.
  // Returns false, and does nothing, if that is impossible.
  virtual bool copy_from(Device& /*device*/, void* /*to*/, const void* /*from*/, size_t /*bytes*/) {
    return false;
  }
};

// Notes for profiles a change of the bytes that are in use in a device's memory. The host's
// allocator notes its memory itself.
inline void note_device_memory(const Device& device, int64_t change) {
  if (is_profiling() && !device.addresses_host_memory()) [[unlikely]]
    note_memory(device.name(), change);
}

}  // namespace rune::runtime
