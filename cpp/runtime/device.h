// What a backend is: a Device with an Allocator and a Compiler, whose Programs run on it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "types/capabilities.h"
#include "types/dtype.h"

namespace rune::runtime {

// Memory of a device. allocate may throw UserError(Runtime); it never returns null for bytes > 0.
class Allocator {
 public:
  virtual ~Allocator() = default;
  virtual void* allocate(size_t bytes) = 0;
  virtual void deallocate(void* memory, size_t bytes) = 0;
  // Whether memory may be deallocated while launches that use it are running.
  virtual bool defers_frees() const { return false; }

  // Makes host memory addressable by launches, without a copy, until release(), which waits for
  // them. False if that cannot be done. One memory may be adopted several times.
  virtual bool adopt(void* /*memory*/, size_t /*bytes*/) { return false; }
  virtual void release(void* /*memory*/) {}
};

// One kernel's text, in the language of the target, and what is known of its launch.
struct KernelSource {
  std::string name;
  std::string text;
  std::array<int64_t, 3> grid{1, 1, 1};
  std::array<int64_t, 3> local{1, 1, 1};
  std::vector<DType> buffer_dtypes;   // by argument
  std::vector<int64_t> buffer_sizes;  // elements, by argument
  std::vector<bool> buffer_written;   // by argument
  int64_t scratch_bytes = 0;          // private to a workgroup
  double estimated_ns = 0;            // of one launch on one core; 0: not to be shared
  // Whether a launch may divide its threads, grid times local, into workgroups of any size.
  bool independent_threads = false;
};

// A workgroup has more threads than the compiled kernel can run with, which depends on the
// registers that it takes. Of a kernel scheduled for at most `allowed()` a workgroup it may be true
// no more.
class ThreadLimitError : public UserError {
 public:
  ThreadLimitError(const std::string& message, int allowed)
      : UserError(ErrorKind::Runtime, message), allowed_(allowed) {}
  int allowed() const { return allowed_; }

 private:
  int allowed_;
};

// The arguments of one launch.
struct LaunchArguments {
  std::span<void* const> buffers;
  std::span<const int64_t> vars;
};

// One compiled kernel. Safe to launch from several threads.
class Program {
 public:
  virtual ~Program() = default;
  virtual void launch(const LaunchArguments& arguments) = 0;
};

class Compiler {
 public:
  virtual ~Compiler() = default;
  // One program a source, in order. Throws UserError(Runtime) with the compiler's message, and
  // ThreadLimitError.
  virtual std::vector<std::shared_ptr<Program>> compile(std::span<const KernelSource> sources) = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual const std::string& name() const = 0;
  virtual const Capabilities& capabilities() const = 0;
  virtual Allocator& allocator() = 0;
  virtual Compiler& compiler() = 0;
  // Whether its memory is the host's: an address of one is an address of the other.
  virtual bool addresses_host_memory() const { return false; }
  // Waits for all launches; throws the first error that one of them met.
  virtual void synchronize() = 0;
  // Copies between host memory and this device's, after the launches so far that use that; copying
  // out throws the error of the launch that was to write the memory.
  virtual void copy_in(void* device, const void* host, size_t bytes) = 0;
  virtual void copy_out(void* host, const void* device, size_t bytes) = 0;
  // Copies within this device's memory, after the launches so far.
  virtual void copy(void* to, const void* from, size_t bytes) = 0;
};

}  // namespace rune::runtime
