// A device's context, the stream for all commands, and the commands' errors.
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

  // Makes the context the calling thread's current one for the scope's lifetime. A thread that had
  // no current context keeps the first device's context afterwards. Throws UserError(Runtime) if an
  // error or a fork destroyed the context.
  class Scope {
   public:
    explicit Scope(const Context& context);
    ~Scope();
    Scope(const Scope&) = delete;

   private:
    bool pushed_ = false;
  };

  // Whether no call can succeed any more: an error destroyed the context, or this is a forked
  // child.
  bool is_dead() const { return is_forked() || is_lost_.load(std::memory_order_acquire); }

  // Throws "cuda: cannot <what> (...)" unless the result is a success: UserError(Memory) if the
  // device has no memory, else UserError(Runtime).
  void check(Result result, const char* what) {
    if (result != kSuccess) [[unlikely]]
      fail(result, what);
  }
  // As check(), for the launch of a kernel. Until synchronize(), errors name this kernel among
  // those that may have failed.
  void check_launch(Result result, const std::shared_ptr<const std::string>& kernel);

  // Whether the kernels launched last were all short: the last kSeveral, or all since the last
  // wait.
  bool runs_short_kernels() const { return num_short_ >= kSeveral; }
  // Calls `launch`, which launches a short kernel.
  void launch_short(const std::function<void()>& launch);

  // Returns an event that happens when a stream of the context has run all its present commands.
  EventHandle record(StreamHandle stream);
  // Makes later commands of `second` wait for the present commands of `first`. `first` is a stream
  // of the context. `second` may belong to another context.
  void order(StreamHandle first, StreamHandle second);

  // Calls `launch` and waits for all commands. Returns the time in ns that the device took for the
  // commands of `launch`. Throws what `launch` and `synchronize` throw.
  double time(const std::function<void()>& launch);

  // Waits for all commands. If one failed, throws UserError(Runtime), which names the kernels
  // launched last: one of them failed.
  void synchronize();

 private:
  [[noreturn]] void fail(Result result, const std::string& what);
  std::string running_kernels();

  const Driver& driver_;
  int device_ = 0;
  ContextHandle handle_ = nullptr;
  StreamHandle stream_ = nullptr;
  std::atomic<bool> is_lost_{false};
  static constexpr int kSeveral = 8;
  std::atomic<int> num_short_{kSeveral};  // short kernels since the last other one
  mutable std::mutex mutex_;              // guards what follows
  std::string loss_;                      // why the context is lost
  std::array<std::shared_ptr<const std::string>, 8> launched_;  // the last kernels, in a ring
  size_t num_launched_ = 0;                                     // since the last wait
};

// The kernel's name in errors: its own name, and the line of the user's code.
std::shared_ptr<const std::string> label_of(const runtime::KernelSource& source);

}  // namespace rune::cuda
