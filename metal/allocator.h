// Buffers in memory that host and GPU share, and which buffer an address is of.
#pragma once

#include <list>
#include <map>
#include <mutex>

#include "metal/queue.h"
#include "runtime/device.h"

namespace rune::metal {

// Freed buffers are kept by size for reuse, up to a part of what the device can hold and only while
// those in use leave room; those unused for longest go first. A buffer is reused only when nothing
// that was launched still uses it. Thread-safe.
class Allocator : public runtime::Allocator {
 public:
  Allocator(id<MTLDevice> device, Queue& queue);

  // Throws UserError(Memory) with the size if the device cannot hold it.
  void* allocate(size_t bytes) override;
  // Null is ignored. Launches that use the memory may still be running.
  void deallocate(void* memory, size_t bytes) override;
  bool defers_frees() const override { return true; }
  // For memory that begins at a page and does not overlap other adopted memory.
  bool adopt(void* memory, size_t bytes) override;
  void release(void* memory) override;

  // Throws InternalError for an address that is of no living buffer.
  Binding find(const void* address) const;

 private:
  std::shared_ptr<Block> reuse_locked(size_t bytes);
  id<MTLBuffer> new_buffer(size_t bytes) const NS_RETURNS_RETAINED;
  void trim_locked(size_t limit);

  const id<MTLDevice> device_;
  Queue& queue_;
  size_t working_set_ = 0;  // what the device holds without paging
  size_t cache_limit_ = 0;
  mutable std::mutex mutex_;
  std::map<uintptr_t, std::shared_ptr<Block>> live_;  // by first address
  std::map<uintptr_t, int> adopted_;                  // how many times
  std::list<std::shared_ptr<Block>> cache_;           // freed last, first
  size_t cached_bytes_ = 0;
  size_t live_bytes_ = 0;  // of those allocated here
};

}  // namespace rune::metal
