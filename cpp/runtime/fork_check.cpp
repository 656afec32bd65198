#include "runtime/fork_check.h"

#include <pthread.h>

#include <atomic>

namespace rune::runtime {

namespace {

// The number of forks between this process and the one that loaded the library.
std::atomic<int> generation{0};

int count_forks() {
  [[maybe_unused]] static const int registered =
      pthread_atfork(nullptr, nullptr, [] { generation.fetch_add(1, std::memory_order_relaxed); });
  return generation.load(std::memory_order_relaxed);
}

}  // namespace

ForkCheck::ForkCheck() : generation_(count_forks()) {}

bool ForkCheck::is_child() const {
  return generation.load(std::memory_order_relaxed) != generation_;
}

}  // namespace rune::runtime
