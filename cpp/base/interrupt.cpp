#include "base/interrupt.h"

#include <atomic>
#include <chrono>

namespace rune {

namespace {

using Clock = std::chrono::steady_clock;

std::atomic<InterruptHook> interrupt_hook{nullptr};

}  // namespace

void set_interrupt_hook(InterruptHook hook) {
  interrupt_hook = hook;
}

void check_interrupt() {
  const InterruptHook hook = interrupt_hook.load(std::memory_order_relaxed);
  if (!hook) return;
  thread_local Clock::time_point next = Clock::now() + std::chrono::milliseconds(50);
  const Clock::time_point now = Clock::now();
  if (now < next) return;
  next = now + std::chrono::milliseconds(50);
  hook();
}

}  // namespace rune
