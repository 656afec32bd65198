// Shares the device's memory with other libraries in the process (DLPack).
#pragma once

#include <deque>
#include <functional>
#include <mutex>

#include "backends/cuda/context.h"
#include "runtime/device.h"

namespace rune::cuda {

// Streams are numbered as in DLPack. 1 is the legacy default stream, with which the context's
// stream is ordered. 2 is the thread's default stream. Other numbers are handles. Thread-safe.
class Interchange : public runtime::Interchange {
 public:
  Interchange(Context& context, int ordinal) : context_(context), ordinal_(ordinal) {}

  std::pair<int, int> device() const override { return {kDlpackCuda, ordinal_}; }
  intptr_t stream() const override { return reinterpret_cast<intptr_t>(context_.stream()); }
  void release_to(intptr_t stream) override;
  void run_after(intptr_t stream) override;
  void wait_for(intptr_t stream) override;
  // Keeps the function until the commands that the device has now are done. A later when_done()
  // then calls it. If none follows, it is never called.
  void when_done(std::function<void()> function) override;

 private:
  static constexpr int kDlpackCuda = 2;
  struct Waiting {
    EventHandle done;
    std::function<void()> function;
  };
  Context& context_;
  const int ordinal_;
  std::mutex mutex_;
  std::deque<Waiting> waiting_;  // in the order of their events
};

}  // namespace rune::cuda
