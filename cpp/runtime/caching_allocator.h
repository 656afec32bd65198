// Host memory that is kept for reuse after it is freed, because fresh pages cost more than the
// arithmetic of a large elementwise kernel.
#pragma once

#include <cstdint>

#include "runtime/device.h"

namespace rune::runtime {

// Returns blocks with undefined contents, aligned to 64 bytes. Blocks of 64 KiB or more are aligned
// to pages. Blocks of 2 MiB or more are aligned to huge pages, which it asks the system for
// (RUNE_JIT_HUGE_PAGES). Thread-safe.
//
// Freed blocks are kept up to RUNE_JIT_ALLOCATOR_CACHE_MIB. Beyond that, the blocks freed longest
// ago are released. A background thread releases blocks that have not been used for
// RUNE_JIT_ALLOCATOR_CACHE_SECONDS. It exists only while blocks are kept. Each thread also keeps a
// few small blocks for itself, which do not count unless the limit is 0.
class CachingAllocator : public Allocator {
 public:
  // Throws UserError(Memory) with the size if the system has no memory even after a trim.
  // allocate(0) returns a block, too.
  void* allocate(size_t bytes) override;
  // `bytes` is the size given to allocate. Any thread may free a block. Null is ignored.
  void deallocate(void* memory, size_t bytes) override;
  // Returns cached blocks to the system. Other threads return their own when they next free a
  // block.
  void trim() override;
  // The bytes of cached blocks, which are up to a quarter larger than the requested sizes. The
  // result is exact only while no other thread allocates or frees.
  int64_t bytes_cached() const;
  // The bytes of blocks that have been allocated and not freed. As exact as bytes_cached().
  int64_t bytes_in_use() const;

 private:
  friend CachingAllocator& caching_allocator();
  CachingAllocator() = default;
};

// The process's allocator. It is never destroyed, because arrays may outlive everything else.
CachingAllocator& caching_allocator();

}  // namespace rune::runtime
