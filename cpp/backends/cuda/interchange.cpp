#include "backends/cuda/interchange.h"

#include <utility>
#include <vector>

#include "base/error.h"

namespace rune::cuda {

namespace {

constexpr intptr_t kLegacyStream = 1;

StreamHandle handle_of(intptr_t stream) {
  return reinterpret_cast<StreamHandle>(stream);  // NOLINT(performance-no-int-to-ptr)
}

}  // namespace

void Interchange::release_to(intptr_t stream) {
  if (stream == kLegacyStream || stream == this->stream()) return;
  const Context::Scope scope(context_);
  context_.order(context_.stream(), handle_of(stream));
}

void Interchange::run_after(intptr_t stream) {
  if (stream == kLegacyStream || stream == this->stream()) return;
  const Context::Scope scope(context_);
  context_.order(handle_of(stream), context_.stream());
}

// Waits for all streams, because the other library may have destroyed its stream since.
void Interchange::wait_for(intptr_t stream) {
  if (stream == kLegacyStream || stream == this->stream() || context_.is_dead()) return;
  const Context::Scope scope(context_);
  context_.check(driver().synchronize_context(), "wait for the other streams");
}

void Interchange::when_done(std::function<void()> function) {
  if (context_.is_dead()) return;  // the memory was lost with the context
  const Context::Scope scope(context_);
  std::vector<Waiting> ready;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    while (!waiting_.empty() && driver().query_event(waiting_.front().done) == kSuccess) {
      ready.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
    }
    waiting_.push_back({context_.record(context_.stream()), std::move(function)});
  }
  for (const Waiting& waiting : ready) {
    driver().destroy_event(waiting.done);
    waiting.function();
  }
}

}  // namespace rune::cuda
