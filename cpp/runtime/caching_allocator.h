// Host memory that is kept for reuse when it is freed: fresh pages cost more than the arithmetic of a
// large elementwise kernel.
#pragma once

#include <cstdint>

#include "runtime/device.h"

namespace rune::runtime {

struct AllocatorStatistics {
  int64_t bytes_in_use = 0;
  int64_t bytes_cached = 0;
};

// Blocks are aligned to 64 bytes, from 2 MiB on to huge pages, and of undefined contents. Freed blocks
// are kept up to RUNE_JIT_ALLOCATOR_CACHE_MIB. Thread-safe. allocate throws UserError(Runtime) with the
// size if the system has no memory; allocate(0) gives a block, too.
class CachingAllocator : public Allocator {
 public:
  void* allocate(size_t bytes) override;
  // `bytes` as in allocate.
  void deallocate(void* memory, size_t bytes) override;
  // Returns all cached blocks to the system.
  void trim();
  AllocatorStatistics statistics() const;

  CachingAllocator();
  ~CachingAllocator() override;

 private:
  friend CachingAllocator& caching_allocator();
  struct State;
  State* state_;
};

// The process's allocator; never destroyed, since arrays may outlive everything else.
CachingAllocator& caching_allocator();

}  // namespace rune::runtime
