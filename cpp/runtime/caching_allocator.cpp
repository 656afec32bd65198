#include "runtime/caching_allocator.h"

#include <pthread.h>
#include <sys/mman.h>

#include <array>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "base/error.h"
#include "base/options.h"

namespace rune::runtime {

namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kHugePage = size_t{2} << 20;
// Sizes up to here are cached in classes 64 bytes apart.
constexpr size_t kSmall = 4096;
constexpr int kSmallClasses = kSmall / kAlignment + 1;
// Above, four classes to every doubling.
constexpr int kClasses = kSmallClasses + 4 * 52;

struct SizeClass {
  int index;
  size_t bytes;  // of its blocks
};

SizeClass class_of(size_t bytes) {
  if (bytes <= kSmall) {
    const size_t units = bytes == 0 ? 1 : (bytes + kAlignment - 1) / kAlignment;
    return {static_cast<int>(units), units * kAlignment};
  }
  const int exponent = std::bit_width(bytes - 1) - 1;  // 2^exponent < bytes <= 2^(exponent+1)
  const size_t quarter = size_t{1} << (exponent - 2);
  const size_t steps = (bytes - (size_t{1} << exponent) + quarter - 1) / quarter;  // 1 .. 4
  size_t rounded = (size_t{1} << exponent) + steps * quarter;
  if (rounded >= kHugePage) rounded = (rounded + kHugePage - 1) / kHugePage * kHugePage;
  return {kSmallClasses + 4 * (exponent - 12) + static_cast<int>(steps) - 1, rounded};
}

void* system_allocate(size_t bytes) {
  const bool huge = bytes >= kHugePage;
  void* memory = std::aligned_alloc(huge ? kHugePage : kAlignment, bytes);
  if (!memory)
    user_error(ErrorKind::Runtime, "allocate: cannot get ", bytes, " bytes of memory from the system");
#if defined(__linux__)
  if (huge && options().huge_pages) madvise(memory, bytes, MADV_HUGEPAGE);
#endif
  return memory;
}

}  // namespace

struct CachingAllocator::State {
  mutable std::mutex mutex;
  std::array<std::vector<void*>, kClasses> free;
  AllocatorStatistics statistics;
};

CachingAllocator::CachingAllocator() : state_(new State) {}

CachingAllocator::~CachingAllocator() {
  trim();
  delete state_;
}

void* CachingAllocator::allocate(size_t bytes) {
  // Beyond the largest class the system cannot serve it either.
  if (bytes > size_t{1} << 48)
    user_error(ErrorKind::Runtime, "allocate: cannot get ", bytes, " bytes of memory from the system");
  const SizeClass size = class_of(bytes);
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->statistics.bytes_in_use += static_cast<int64_t>(size.bytes);
    std::vector<void*>& free = state_->free[size.index];
    if (!free.empty()) {
      void* memory = free.back();
      free.pop_back();
      state_->statistics.bytes_cached -= static_cast<int64_t>(size.bytes);
      return memory;
    }
  }
  try {
    return system_allocate(size.bytes);
  } catch (const UserError&) {
    // What other sizes keep may be what is missing.
    try {
      trim();
      return system_allocate(size.bytes);
    } catch (const UserError&) {
      const std::lock_guard<std::mutex> lock(state_->mutex);
      state_->statistics.bytes_in_use -= static_cast<int64_t>(size.bytes);
      throw;
    }
  }
}

void CachingAllocator::deallocate(void* memory, size_t bytes) {
  if (!memory) return;
  const SizeClass size = class_of(bytes);
  const int64_t most = static_cast<int64_t>(options().allocator_cache_mib) << 20;
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    AllocatorStatistics& s = state_->statistics;
    s.bytes_in_use -= static_cast<int64_t>(size.bytes);
    if (s.bytes_cached + static_cast<int64_t>(size.bytes) <= most) {
      state_->free[size.index].push_back(memory);
      s.bytes_cached += static_cast<int64_t>(size.bytes);
      return;
    }
  }
  std::free(memory);
}

void CachingAllocator::trim() {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  for (std::vector<void*>& free : state_->free) {
    for (void* memory : free) std::free(memory);
    free.clear();
  }
  state_->statistics.bytes_cached = 0;
}

AllocatorStatistics CachingAllocator::statistics() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->statistics;
}

CachingAllocator& caching_allocator() {
  static CachingAllocator* const instance = [] {
    auto* made = new CachingAllocator;
    // A child must not inherit the lock of a thread that it does not have.
    pthread_atfork([] { caching_allocator().state_->mutex.lock(); },
                   [] { caching_allocator().state_->mutex.unlock(); },
                   [] { caching_allocator().state_->mutex.unlock(); });
    return made;
  }();
  return *instance;
}

}  // namespace rune::runtime
