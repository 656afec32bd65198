#include "metal/allocator.h"

#include <unistd.h>

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "base/options.h"

namespace rune::metal {

namespace {

// Copying fewer bytes than these costs less than a buffer object.
constexpr size_t kLeastAdopted = size_t{64} << 10;

// Rounds a size up to a multiple of an eighth of a power of two, at least of a page. So similar
// sizes can share buffers, and at most an eighth is lost.
size_t bucket_of(size_t bytes) {
  constexpr size_t kPage = size_t{16} << 10;
  const size_t step = std::max(kPage, std::bit_floor(bytes) / 8);
  return bytes <= 256     ? 256
         : bytes <= kPage ? std::bit_ceil(bytes)
                          : (bytes + step - 1) / step * step;
}

}  // namespace

Allocator::Allocator(id<MTLDevice> device, Queue& queue)
    : device_(device), can_adopt_(!is_paravirtual(device)), queue_(queue) {
  const size_t wanted = static_cast<size_t>(std::max(options().allocator_cache_mib, 0)) << 20;
  working_set_ = device.recommendedMaxWorkingSetSize;
  cache_limit_ = std::min(wanted, working_set_ / 4);
}

void* Allocator::allocate(size_t bytes) {
  queue_.require_own_process();
  const size_t limit = device_.maxBufferLength;
  if (bytes > limit)
    user_error(ErrorKind::Memory, "metal: cannot allocate ", bytes,
               " bytes (one buffer holds at most ", limit, ")");
  const size_t size = std::min(bucket_of(bytes), limit);
  std::unique_lock<std::mutex> lock(mutex_);
  std::shared_ptr<Block> block = reuse_locked(size);
  if (!block) block = make_room_locked(lock, size);
  if (!block) {
    block = std::make_shared<Block>();
    block->buffer = new_buffer(size);
    if (!block->buffer) {
      // Cached buffers, and buffers that running work still uses, may hold the missing memory.
      trim_locked(0);
      lock.unlock();
      queue_.synchronize();
      lock.lock();
      block->buffer = new_buffer(size);
    }
    if (!block->buffer)
      user_error(ErrorKind::Memory, "metal: cannot allocate ", bytes,
                 " bytes (the device has no memory left)");
    block->bytes = size;
    block->counter = held_bytes_;
    *held_bytes_ += size;
  }
  void* memory = nullptr;
  @autoreleasepool {
    memory = block->buffer.contents;
  }
  live_bytes_ += block->bytes;
  live_[reinterpret_cast<uintptr_t>(memory)] = std::move(block);
  return memory;
}

// Metal takes whole pages. The part of the last page after the end of the memory is not accessed.
bool Allocator::adopt(void* memory, size_t bytes) {
  const auto at = reinterpret_cast<uintptr_t>(memory);
  const auto page = static_cast<size_t>(getpagesize());
  if (queue_.is_forked() || !can_adopt_ || at % page != 0 || bytes < kLeastAdopted ||
      bytes > device_.maxBufferLength)
    return false;
  const size_t whole = (bytes + page - 1) / page * page;
  const std::lock_guard<std::mutex> lock(mutex_);
  auto next = live_.lower_bound(at);
  if (next != live_.end() && next->first == at) {
    if (!adopted_.count(at) || next->second->bytes < bytes) return false;
    ++adopted_[at];
    return true;
  }
  if (next != live_.end() && next->first < at + whole) return false;
  if (next != live_.begin() && (--next)->first + next->second->bytes > at) return false;
  auto block = std::make_shared<Block>();
  block->bytes = whole;
  @autoreleasepool {
    block->buffer = [device_ newBufferWithBytesNoCopy:memory
                                               length:whole
                                              options:MTLResourceStorageModeShared
                                          deallocator:nil];
    block->buffer.label = to_ns(concat("rune_jit, ", whole, " bytes of the host's"));
    // GPUs of virtual machines have returned buffers without any bytes.
    if (block->buffer.length < bytes || block->buffer.contents != memory) return false;
  }
  live_[at] = std::move(block);
  adopted_[at] = 1;
  return true;
}

void Allocator::release(void* memory) {
  if (queue_.is_forked()) return;
  const auto at = reinterpret_cast<uintptr_t>(memory);
  std::shared_ptr<Block> block;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto known = adopted_.find(at);
    RUNE_CHECK(known != adopted_.end(), "memory is released that was not adopted");
    block = live_.at(at);
    if (--known->second == 0) {
      adopted_.erase(known);
      live_.erase(at);
    }
  }
  queue_.wait_for(*block, false);
}

id<MTLBuffer> Allocator::new_buffer(size_t bytes) const {
  @autoreleasepool {
    const id<MTLBuffer> buffer = [device_ newBufferWithLength:bytes
                                                      options:MTLResourceStorageModeShared];
    buffer.label = to_ns(concat("rune_jit, ", bytes, " bytes"));
    return buffer;
  }
}

// Frees cached buffers, and waits for launches that use freed ones. May return a buffer that became
// free. This is necessary because the memory is the machine's: an allocation that exceeds it makes
// the machine swap instead of failing.
std::shared_ptr<Block> Allocator::make_room_locked(std::unique_lock<std::mutex>& lock,
                                                   size_t bytes) {
  const size_t limit = working_set_ / 4 * 3;
  for (;;) {
    const size_t needed = live_bytes_ + bytes;
    trim_locked(working_set_ > needed ? std::min(cache_limit_, working_set_ - needed) : 0);
    if (*held_bytes_ + bytes <= limit || *held_bytes_ <= live_bytes_) return nullptr;
    trim_locked(0);
    if (*held_bytes_ + bytes <= limit || *held_bytes_ <= live_bytes_) return nullptr;
    lock.unlock();
    const bool has_waited = queue_.wait_for_oldest();
    lock.lock();
    if (std::shared_ptr<Block> block = reuse_locked(bytes)) return block;
    if (!has_waited) return nullptr;
  }
}

void Allocator::trim() {
  if (queue_.is_forked()) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  trim_locked(0);
}

std::shared_ptr<Block> Allocator::reuse_locked(size_t bytes) {
  for (auto it = cache_.begin(); it != cache_.end(); ++it) {
    if ((*it)->bytes != bytes || !queue_.is_idle(**it)) continue;
    std::shared_ptr<Block> block = *it;
    queue_.reset(*block);
    cache_.erase(it);
    cached_bytes_ -= block->bytes;
    return block;
  }
  return nullptr;
}

void Allocator::deallocate(void* memory, size_t) {
  if (!memory || queue_.is_forked()) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto it = live_.find(reinterpret_cast<uintptr_t>(memory));
  RUNE_CHECK(it != live_.end(), "memory is freed that was not allocated here, or twice");
  live_bytes_ -= it->second->bytes;
  cached_bytes_ += it->second->bytes;
  cache_.push_front(std::move(it->second));
  live_.erase(it);
  trim_locked(cache_limit_);
}

void Allocator::trim_locked(size_t limit) {
  // If running work still uses a block, its completion handler keeps the block alive.
  while (cached_bytes_ > limit) {
    cached_bytes_ -= cache_.back()->bytes;
    cache_.pop_back();
  }
}

Binding Allocator::find(const void* address) const {
  queue_.require_own_process();
  if (!address) {
    const auto block = std::make_shared<Block>();
    block->buffer = new_buffer(1);
    if (!block->buffer) user_error(ErrorKind::Memory, "metal: cannot allocate 1 byte");
    return {block, 0, 0, false};
  }
  const auto at = reinterpret_cast<uintptr_t>(address);
  const std::lock_guard<std::mutex> lock(mutex_);
  auto it = live_.upper_bound(at);
  RUNE_CHECK(it != live_.begin(), "an argument is not in the memory of the Metal device");
  --it;
  const size_t offset = at - it->first;
  RUNE_CHECK(offset < it->second->bytes, "an argument is not in the memory of the Metal device");
  return {it->second, offset, 0, false};
}

}  // namespace rune::metal
