#include "runtime/caching_allocator.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/options.h"
#include "runtime/profile.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RUNE_POISONS_MEMORY
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define RUNE_POISONS_MEMORY
#endif
#ifdef RUNE_POISONS_MEMORY
extern "C" void __asan_poison_memory_region(const volatile void*, size_t);
extern "C" void __asan_unpoison_memory_region(const volatile void*, size_t);
#endif

namespace rune::runtime {

namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kPageAligned = size_t{64} << 10;  // blocks of this size or more start at a page
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kLargest = size_t{1} << 47;  // the size of a process's address space
// Up to this size, classes are 64 bytes apart, and every thread keeps some blocks of each class.
constexpr size_t kSmall = 4096;
constexpr int kSmallClasses = kSmall / kAlignment + 1;
constexpr int kKeptPerThread = 16;
// Above kSmall, there are four classes for each doubling of the size.
constexpr int kClasses = kSmallClasses + 4 * (47 - 12);

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
  return {kSmallClasses + 4 * (exponent - 12) + static_cast<int>(steps) - 1,
          (size_t{1} << exponent) + steps * quarter};
}

// Makes the address sanitizer report accesses to cached blocks, and to the part of a block beyond
// the bytes that were requested.
void poison([[maybe_unused]] void* memory, [[maybe_unused]] size_t bytes) {
#ifdef RUNE_POISONS_MEMORY
  __asan_poison_memory_region(memory, bytes);
#endif
}

void unpoison([[maybe_unused]] void* memory, [[maybe_unused]] size_t bytes) {
#ifdef RUNE_POISONS_MEMORY
  __asan_unpoison_memory_region(memory, bytes);
#endif
}

// Maps memory that is aligned to huge pages: maps more, and unmaps the excess at both ends.
void* map_huge(size_t bytes) {
  void* const mapped =
      mmap(nullptr, bytes + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  char* const begin = static_cast<char*>(mapped);
  const size_t before = -reinterpret_cast<uintptr_t>(begin) % kHugePage;
  if (before > 0) munmap(begin, before);
  if (before < kHugePage) munmap(begin + before + bytes, kHugePage - before);
#if defined(__linux__)
  // If the kernel has no huge pages, this fails, and pages are small.
  if (options().huge_pages) madvise(begin + before, bytes, MADV_HUGEPAGE);
#endif
  return begin + before;
}

// The bytes of blocks that the system has given and not got back.
std::atomic<int64_t> bytes_held{0};

// `bytes` is the size of a class. Null if there is no memory.
void* system_allocate(size_t bytes) {
  static const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t alignment = bytes >= kPageAligned ? std::min(page, kPageAligned / 4) : kAlignment;
  void* const memory = bytes >= kHugePage ? map_huge(bytes) : std::aligned_alloc(alignment, bytes);
  if (memory) bytes_held.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed);
  return memory;
}

void system_free(void* memory, size_t bytes) {
  bytes_held.fetch_sub(static_cast<int64_t>(bytes), std::memory_order_relaxed);
  unpoison(memory, bytes);
  if (bytes >= kHugePage) {
    munmap(memory, bytes);
  } else {
    std::free(memory);
  }
}

// A counter that one thread changes and others read.
class OwnedCounter {
 public:
  void add(int64_t amount) { value_.store(get() + amount, std::memory_order_relaxed); }
  int64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> value_{0};
};

// The small blocks that one thread keeps, without locks.
struct ThreadCache {
  std::array<uint8_t, kSmallClasses> counts{};
  std::array<std::array<void*, kKeptPerThread>, kSmallClasses> blocks;
  OwnedCounter cached;
  uint64_t trims = 0;  // the number of trims that this cache has carried out

  void* pop(SizeClass size) {
    if (counts[size.index] == 0) return nullptr;
    cached.add(-static_cast<int64_t>(size.bytes));
    return blocks[size.index][--counts[size.index]];
  }
  void push(SizeClass size, void* memory) {
    cached.add(static_cast<int64_t>(size.bytes));
    blocks[size.index][counts[size.index]++] = memory;
  }
};

// The free blocks that all threads share.
class Central {
 public:
  // Takes a block, or returns null if none is cached. Moves some more small blocks to the thread's
  // cache, if it is given.
  void* take(SizeClass size, ThreadCache* cache) {
    const std::lock_guard<std::mutex> lock(mutex_);
    void* const memory = pop(size);
    if (!cache || !memory) return memory;
    while (cache->counts[size.index] < kKeptPerThread / 2) {
      void* const more = pop(size);
      if (!more) break;
      cache->push(size, more);
    }
    return memory;
  }

  // Keeps blocks of one size. If that exceeds the limit, releases the blocks freed longest ago.
  void give(SizeClass size, void* const* blocks, int count) {
    const int64_t limit = static_cast<int64_t>(options().allocator_cache_mib) << 20;
    std::vector<std::pair<void*, size_t>> evicted;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      for (int i = 0; i < count; ++i) {
        free_[size.index].push_back({blocks[i], ++clock_});
        cached_ += static_cast<int64_t>(size.bytes);
      }
      if (cached_ > limit) evict(limit, evicted);
      if (!is_aging_ && cached_ > 0 && options().allocator_cache_seconds > 0)
        is_aging_ = start_aging();
    }
    for (const auto& [memory, bytes] : evicted) system_free(memory, bytes);
  }

  void trim() {
    trims_.fetch_add(1, std::memory_order_relaxed);
    std::vector<std::pair<void*, size_t>> evicted;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      for (int i = 0; i < kClasses; ++i) {
        for (const Block& block : free_[i]) evicted.push_back({block.memory, bytes_of(i)});
        free_[i].clear();
      }
      cached_ = 0;
    }
    for (const auto& [memory, bytes] : evicted) system_free(memory, bytes);
  }

  uint64_t trims() const { return trims_.load(std::memory_order_relaxed); }

  void enter(ThreadCache* cache) {
    const std::lock_guard<std::mutex> lock(mutex_);
    cache->trims = trims();
    caches_.push_back(cache);
  }

  void leave(ThreadCache* cache) {
    const std::lock_guard<std::mutex> lock(mutex_);
    caches_.erase(std::find(caches_.begin(), caches_.end(), cache));
  }

  int64_t bytes_cached() {
    const std::lock_guard<std::mutex> lock(mutex_);
    int64_t sum = cached_;
    for (const ThreadCache* cache : caches_) sum += cache->cached.get();
    return sum;
  }

  // Called around a fork, so that the child does not inherit a lock that a thread of the parent
  // holds. The child also lacks the thread that releases blocks.
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }
  void unlock_in_child() {
    is_aging_ = false;
    mutex_.unlock();
  }

 private:
  struct Block {
    void* memory;
    uint64_t freed_at;
  };

  void* pop(SizeClass size) {
    std::deque<Block>& free = free_[size.index];
    if (free.empty()) return nullptr;
    void* const memory = free.back().memory;
    free.pop_back();
    cached_ -= static_cast<int64_t>(size.bytes);
    return memory;
  }

  // Starts the thread that releases unused blocks. Returns false if the system refuses it.
  bool start_aging() {
    sigset_t all, before;  // signals belong to the program's own threads
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool has_started = true;
    try {
      std::thread([this] { age(); }).detach();
    } catch (const std::system_error&) {
      has_started = false;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return has_started;
  }

  // Releases unused blocks. It looks twice within the longest time that a block may stay, and
  // releases the blocks that were already free at the last look. Ends when no blocks are left.
  void age() {
    const auto period = std::chrono::milliseconds(500) * options().allocator_cache_seconds;
    for (uint64_t last = 0;;) {
      std::this_thread::sleep_for(period);
      std::vector<std::pair<void*, size_t>> evicted;
      bool is_last = false;
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        for (int i = 0; i < kClasses; ++i)
          for (; !free_[i].empty() && free_[i].front().freed_at <= last; free_[i].pop_front()) {
            evicted.push_back({free_[i].front().memory, bytes_of(i)});
            cached_ -= static_cast<int64_t>(bytes_of(i));
          }
        last = clock_;
        is_last = cached_ == 0;
        if (is_last) is_aging_ = false;
      }
      for (const auto& [memory, bytes] : evicted) system_free(memory, bytes);
      if (is_last) return;
    }
  }

  void evict(int64_t limit, std::vector<std::pair<void*, size_t>>& evicted) {
    while (cached_ > limit) {
      int oldest = -1;
      for (int i = 0; i < kClasses; ++i)
        if (!free_[i].empty() &&
            (oldest < 0 || free_[i].front().freed_at < free_[oldest].front().freed_at))
          oldest = i;
      const size_t bytes = bytes_of(oldest);
      evicted.push_back({free_[oldest].front().memory, bytes});
      free_[oldest].pop_front();
      cached_ -= static_cast<int64_t>(bytes);
    }
  }

  static size_t bytes_of(int index) {
    if (index < kSmallClasses) return index * kAlignment;
    const int exponent = 12 + (index - kSmallClasses) / 4;
    return (size_t{4} + (index - kSmallClasses) % 4 + 1) << (exponent - 2);
  }

  std::mutex mutex_;
  std::array<std::deque<Block>, kClasses> free_;  // by class; the block freed last is at the back
  uint64_t clock_ = 0;
  int64_t cached_ = 0;
  bool is_aging_ = false;  // whether a thread runs age()
  std::atomic<uint64_t> trims_{0};
  std::vector<ThreadCache*> caches_;
};

Central& central() {
  static Central* const instance = [] {
    pthread_atfork([] { central().lock(); }, [] { central().unlock(); },
                   [] { central().unlock_in_child(); });
    return new Central;
  }();
  return *instance;
}

// Made when the library is loaded, so that no fork happens while it is made.
[[maybe_unused]] const Central& central_at_load = central();

void drop(ThreadCache& cache) {
  cache.trims = central().trims();
  for (int i = 1; i < kSmallClasses; ++i) {
    const SizeClass size{i, i * kAlignment};
    while (void* const memory = cache.pop(size)) system_free(memory, size.bytes);
  }
}

// Plain data, so that it can still be read when blocks are freed while the thread's other variables
// are destroyed.
thread_local ThreadCache* this_cache = nullptr;
thread_local bool thread_ends = false;

struct CacheOwner {
  ~CacheOwner() {
    thread_ends = true;
    drop(*this_cache);
    central().leave(this_cache);
    delete std::exchange(this_cache, nullptr);
  }
};

ThreadCache* start_cache() {
  if (thread_ends) return nullptr;
  this_cache = new ThreadCache;
  central().enter(this_cache);
  static thread_local CacheOwner owner;
  (void)owner;
  return this_cache;
}

// Null in a thread that is ending.
ThreadCache* thread_cache() {
  return this_cache ? this_cache : start_cache();
}

[[noreturn]] void out_of_memory(size_t bytes) {
  user_error(ErrorKind::Memory, "allocate: cannot get ", bytes, " bytes of memory from the system");
}

void* allocate_new(SizeClass size, size_t bytes) {
  if (void* const memory = system_allocate(size.bytes)) return memory;
  // Cached blocks of other sizes may hold the missing memory.
  caching_allocator().trim();
  if (void* const memory = system_allocate(size.bytes)) return memory;
  out_of_memory(bytes);
}

}  // namespace

void* CachingAllocator::allocate(size_t bytes) {
  if (bytes > kLargest) out_of_memory(bytes);
  const SizeClass size = class_of(bytes);
  ThreadCache* const cache = thread_cache();
  const bool small = size.index < kSmallClasses && cache;
  void* memory = small ? cache->pop(size) : nullptr;
  if (!memory) memory = central().take(size, small ? cache : nullptr);
  if (!memory) memory = allocate_new(size, bytes);
  unpoison(memory, bytes);
  poison(static_cast<char*>(memory) + bytes, size.bytes - bytes);
  if (is_profiling()) [[unlikely]]
    note_memory("cpu", static_cast<int64_t>(size.bytes));
  return memory;
}

void CachingAllocator::deallocate(void* memory, size_t bytes) {
  if (!memory) return;
  const SizeClass size = class_of(bytes);
  if (is_profiling()) [[unlikely]]
    note_memory("cpu", -static_cast<int64_t>(size.bytes));
  ThreadCache* const cache = thread_cache();
  const int64_t limit = static_cast<int64_t>(options().allocator_cache_mib) << 20;
  if (static_cast<int64_t>(size.bytes) > limit) {
    system_free(memory, size.bytes);
    return;
  }
  poison(memory, size.bytes);
  if (size.index >= kSmallClasses || !cache) {
    central().give(size, &memory, 1);
    return;
  }
  if (cache->trims != central().trims()) drop(*cache);
  if (cache->counts[size.index] == kKeptPerThread) {
    std::array<void*, kKeptPerThread / 2> spare;
    for (void*& block : spare) block = cache->pop(size);
    central().give(size, spare.data(), static_cast<int>(spare.size()));
  }
  cache->push(size, memory);
}

void CachingAllocator::trim() {
  central().trim();
  if (this_cache) drop(*this_cache);
}

int64_t CachingAllocator::bytes_cached() const {
  return central().bytes_cached();
}

int64_t CachingAllocator::bytes_in_use() const {
  return bytes_held.load(std::memory_order_relaxed) - bytes_cached();
}

CachingAllocator& caching_allocator() {
  static CachingAllocator* const instance = new CachingAllocator;
  return *instance;
}

}  // namespace rune::runtime
