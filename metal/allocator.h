// Allocates buffers in memory that host and GPU share, and finds the buffer of an address.
#pragma once

#include <list>
#include <map>
#include <mutex>

#include "metal/queue.h"
#include "runtime/device.h"

namespace rune::metal {

// Keeps freed buffers by size for reuse. They take at most a part of the device's memory, and no
// more than the buffers in use leave. The buffers freed longest ago are released first. A buffer is
// reused only when no launch uses it any more. If all buffers (including freed ones that launches
// still use) would take more than three quarters of the memory that the device recommends, an
// allocation waits for launches. Thread-safe.
class Allocator : public runtime::Allocator {
 public:
  Allocator(id<MTLDevice> device, Queue& queue);

  // Throws UserError(Memory) with the size if the device has no room.
  void* allocate(size_t bytes) override;
  // Null is ignored. Launches that use the memory may still be running.
  void deallocate(void* memory, size_t bytes) override;
  bool defers_frees() const override { return true; }
  void trim() override;
  // Adopts only memory that begins at a page and does not overlap other adopted memory. Adopts
  // nothing on the GPU of a virtual machine.
  bool adopt(void* memory, size_t bytes) override;
  void release(void* memory) override;

  // The buffer of an address. Null, the memory of an array without elements, gets a new buffer,
  // which no kernel uses; this may throw UserError(Memory). Throws UserError(Runtime) in a forked
  // process, and InternalError for an address outside of all buffers.
  Binding find(const void* address) const;

 private:
  std::shared_ptr<Block> reuse_locked(size_t bytes);
  id<MTLBuffer> new_buffer(size_t bytes) const NS_RETURNS_RETAINED;
  void trim_locked(size_t limit);
  std::shared_ptr<Block> make_room_locked(std::unique_lock<std::mutex>& lock, size_t bytes);

  const id<MTLDevice> device_;
  const bool can_adopt_;
  Queue& queue_;
  size_t working_set_ = 0;  // bytes that the device holds without paging
  size_t cache_limit_ = 0;
  mutable std::mutex mutex_;
  std::map<uintptr_t, std::shared_ptr<Block>> live_;  // by first address
  std::map<uintptr_t, int> adopted_;                  // number of adoptions, by first address
  std::list<std::shared_ptr<Block>> cache_;           // the buffer freed last comes first
  size_t cached_bytes_ = 0;
  size_t live_bytes_ = 0;  // of buffers allocated here, not adopted
  // The bytes of all buffers: in use, cached, or held only by launches.
  const std::shared_ptr<std::atomic<size_t>> held_bytes_ = std::make_shared<std::atomic<size_t>>(0);
};

}  // namespace rune::metal
