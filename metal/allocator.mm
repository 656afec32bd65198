#include "metal/allocator.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "base/options.h"

namespace rune::metal {

namespace {

// Sizes come in steps of an eighth of a power of two, at least of a page: sizes near to one another
// share buffers, and at most an eighth is lost.
size_t bucket_of(size_t bytes) {
  constexpr size_t kPage = size_t{16} << 10;
  const size_t step = std::max(kPage, std::bit_floor(bytes) / 8);
  return bytes <= 256     ? 256
         : bytes <= kPage ? std::bit_ceil(bytes)
                          : (bytes + step - 1) / step * step;
}

}  // namespace

Allocator::Allocator(id<MTLDevice> device, Queue& queue) : device_(device), queue_(queue) {
  const size_t wanted = static_cast<size_t>(std::max(options().allocator_cache_mib, 0)) << 20;
  cache_limit_ = std::min<size_t>(wanted, device.recommendedMaxWorkingSetSize / 4);
}

void* Allocator::allocate(size_t bytes) {
  const size_t limit = device_.maxBufferLength;
  if (bytes > limit)
    user_error(ErrorKind::Memory, "metal: cannot allocate ", bytes,
               " bytes (one buffer holds at most ", limit, ")");
  const size_t size = std::min(bucket_of(bytes), limit);
  std::unique_lock<std::mutex> lock(mutex_);
  std::shared_ptr<Block> block = reuse_locked(size);
  if (!block) {
    block = std::make_shared<Block>();
    block->bytes = size;
    block->buffer = new_buffer(size);
    if (!block->buffer) {
      // Cached buffers and those that running work still uses may be in the way.
      trim_locked(0);
      lock.unlock();
      queue_.synchronize();
      lock.lock();
      block->buffer = new_buffer(size);
    }
    if (!block->buffer)
      user_error(ErrorKind::Memory, "metal: cannot allocate ", bytes,
                 " bytes (the device has no memory left)");
  }
  void* memory = nullptr;
  @autoreleasepool {
    memory = block->buffer.contents;
  }
  live_[reinterpret_cast<uintptr_t>(memory)] = std::move(block);
  return memory;
}

id<MTLBuffer> Allocator::new_buffer(size_t bytes) const {
  @autoreleasepool {
    return [device_ newBufferWithLength:bytes options:MTLResourceStorageModeShared];
  }
}

std::shared_ptr<Block> Allocator::reuse_locked(size_t bytes) {
  for (auto it = cache_.begin(); it != cache_.end(); ++it) {
    if ((*it)->bytes != bytes || !queue_.is_idle(**it)) continue;
    std::shared_ptr<Block> block = *it;
    cache_.erase(it);
    cached_bytes_ -= block->bytes;
    return block;
  }
  return nullptr;
}

void Allocator::deallocate(void* memory, size_t) {
  if (!memory) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto it = live_.find(reinterpret_cast<uintptr_t>(memory));
  RUNE_CHECK(it != live_.end(), "memory is freed that was not allocated here, or twice");
  cached_bytes_ += it->second->bytes;
  cache_.push_front(std::move(it->second));
  live_.erase(it);
  trim_locked(cache_limit_);
}

void Allocator::trim_locked(size_t limit) {
  // The completion handler of work that still uses a block keeps it until then.
  while (cached_bytes_ > limit) {
    cached_bytes_ -= cache_.back()->bytes;
    cache_.pop_back();
  }
}

Binding Allocator::find(const void* address) const {
  const auto at = reinterpret_cast<uintptr_t>(address);
  const std::lock_guard<std::mutex> lock(mutex_);
  auto it = live_.upper_bound(at);
  RUNE_CHECK(it != live_.begin(), "an argument is not in the memory of the Metal device");
  --it;
  const size_t offset = at - it->first;
  RUNE_CHECK(offset < it->second->bytes, "an argument is not in the memory of the Metal device");
  return {it->second, offset};
}

}  // namespace rune::metal
