// Memory that other libraries in the process use as well (DLPack).
#pragma once

#include <deque>
#include <functional>
#include <mutex>

#include "backends/cuda/context.h"
#include "runtime/device.h"

namespace rune::cuda {

// Streams are numbered as in DLPack: 1 is the legacy default stream, with which the context's
// stream is ordered; 2 the thread's default stream; other numbers are handles. Thread-safe.
class Interchange : public runtime::Interchange {
 public:
  Interchange(Context& context, int ordinal) : context_(context), ordinal_(ordinal) {}

  std::pair<int, int> device() const override { return {kDlpackCuda, ordinal_}; }
  intptr_t stream() const override { return reinterpret_cast<intptr_t>(context_.stream()); }
  void release_to(intptr_t stream) override;
  void run_after(intptr_t stream) override;
  void wait_for(intptr_t stream) override;
  // Keeps the function until what the device has been given by now is done. A later when_done()
  // calls it; if none follows, nothing does.
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
