// A device's context, the stream that everything runs on, and the errors of what ran.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "backends/cuda/driver.h"
#include "runtime/device.h"

namespace rune::cuda {

// The primary context of a device, which other libraries in the process share, with one stream. The
// stream is ordered with the legacy default stream, on which most libraries run. All commands of
// this backend run in the stream in the order in which they are issued. Thread-safe.
//
// Some errors, such as an access outside of memory, destroy the context: each later call throws an
// error that names the first one.
class Context {
 public:
  // Throws UserError(Runtime) if there is no device of this number.
  explicit Context(int ordinal);
  Context(const Context&) = delete;

  int device() const { return device_; }
  ContextHandle handle() const { return handle_; }
  StreamHandle stream() const { return stream_; }
  int attribute(Attribute attribute) const;

  // Makes the context the calling thread's for a scope. Throws UserError(Runtime) if the context
  // was destroyed by an error, or by a fork.
  class Scope {
   public:
    explicit Scope(const Context& context);
    ~Scope();
    Scope(const Scope&) = delete;

   private:
    bool pushed_ = false;
  };

  // Whether calls are pointless: after an error that destroyed the context, and in a forked child.
  bool is_dead() const { return is_forked() || is_lost_.load(std::memory_order_acquire); }

  // Throws UserError(Runtime), or UserError(Memory) if there is no memory, unless the result of
  // `what` is a success: "cuda: cannot <what> (...)".
  void check(Result result, const char* what) {
    if (result != kSuccess) [[unlikely]]
      fail(result, what);
  }
  // As check(), of a launch of a kernel, which errors name from now on until synchronize().
  void check_launch(Result result, const std::shared_ptr<const std::string>& kernel);

  // An event that all commands given to a stream of the context so far come before.
  EventHandle record(StreamHandle stream);
  // What `second` is given from now on runs after what `first`, a stream of the context, has been
  // given so far. `second` may be a stream of another context.
  void order(StreamHandle first, StreamHandle second);

  // Calls `launch` and waits for all commands. Returns the ns that the device took for those that
  // it gave. Throws what `launch` and `synchronize` throw.
  double time(const std::function<void()>& launch);

  // Waits for all commands. Throws UserError(Runtime) with the kernels of which one failed.
  void synchronize();

 private:
  [[noreturn]] void fail(Result result, const std::string& what);
  std::string running_kernels();

  const Driver& driver_;
  int device_ = 0;
  ContextHandle handle_ = nullptr;
  StreamHandle stream_ = nullptr;
  std::atomic<bool> is_lost_{false};
  mutable std::mutex mutex_;                                    // guards what follows
  std::string loss_;                                            // why the context is lost
  std::array<std::shared_ptr<const std::string>, 8> launched_;  // the last ones, in a ring
  size_t num_launched_ = 0;                                     // since all had run
};

// What errors call a kernel: its name, and the user's line.
std::shared_ptr<const std::string> label_of(const runtime::KernelSource& source);

}  // namespace rune::cuda
