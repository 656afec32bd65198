// Host memory that is kept for reuse when it is freed: fresh pages cost more than the arithmetic of
// a large elementwise kernel.
#pragma once

#include <cstdint>

#include "runtime/device.h"

namespace rune::runtime {

// Bytes of whole blocks, which are up to a quarter larger than what was asked for.
struct AllocatorStatistics {
  int64_t bytes_in_use = 0;
  int64_t bytes_cached = 0;
};

// Blocks of undefined contents, aligned to 64 bytes; from 64 KiB on to pages, from 2 MiB on to huge
// pages, which the system is asked for (RUNE_JIT_HUGE_PAGES). Thread-safe.
//
// Freed blocks are kept up to RUNE_JIT_ALLOCATOR_CACHE_MIB; those unused for longest go first. Each
// thread keeps a few small blocks of its own, outside this limit unless it is 0.
class CachingAllocator : public Allocator {
 public:
  // Throws UserError(Runtime) with the size if the system has no memory even after a trim.
  // allocate(0) gives a block, too.
  void* allocate(size_t bytes) override;
  // `bytes` as in allocate; any thread may free. Null is ignored.
  void deallocate(void* memory, size_t bytes) override;
  // Returns cached blocks to the system; other threads return their own when they next free one.
  void trim();
  // Exact while no other thread allocates or frees.
  AllocatorStatistics statistics() const;

 private:
  friend CachingAllocator& caching_allocator();
  CachingAllocator() = default;
};

// The process's allocator; never destroyed, since arrays may outlive everything else.
CachingAllocator& caching_allocator();

}  // namespace rune::runtime
