#include "backends/cuda/allocator.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/error.h"
#include "base/options.h"

namespace rune::cuda {

namespace {

// Rounds a size up to a multiple of an eighth of a power of two, at least of 512 bytes. So similar
// sizes can share blocks, and at most an eighth is lost.
size_t round_up(size_t bytes) {
  const size_t step = std::max<size_t>(512, std::bit_floor(bytes) / 8);
  return (std::max<size_t>(bytes, 1) + step - 1) / step * step;
}

}  // namespace

Allocator::Allocator(Context& context)
    : context_(context),
      limit_(static_cast<int64_t>(std::max(options().allocator_cache_mib, 0)) << 20) {
  if (!context.attribute(Attribute::MemoryPools)) return;
  const Context::Scope scope(context);
  PoolProperties properties;
  properties.device = context.device();
  context.check(driver().create_pool(&pool_, &properties), "make a pool of memory");
  size_t total = 0;
  context.check(driver().device_total_memory(&total, context.device()), "read the memory's size");
  uint64_t kept = limit_ ? total / 4 : 0;
  context.check(driver().set_pool_attribute(pool_, kPoolReleaseThreshold, &kept),
                "set up the pool of memory");
}

void* Allocator::allocate(size_t bytes) {
  const size_t size = round_up(bytes);
  void* memory = context_.is_dead() ? nullptr : take(size);
  if (!memory) {
    const Context::Scope scope(context_);
    Address fresh = 0;
    Result result = allocate_new(size, fresh);
    if (result == kOutOfMemory) {
      trim();
      result = allocate_new(size, fresh);
    }
    if (result == kOutOfMemory) {
      size_t free = 0, total = 0;
      driver().memory_info(&free, &total);
      user_error(ErrorKind::Memory, "cuda: cannot allocate ", bytes, " bytes (", free,
                 " bytes of the device's ", total, " are free)");
    }
    context_.check(result, "allocate memory");
    memory = reinterpret_cast<void*>(fresh);  // NOLINT(performance-no-int-to-ptr)
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  used_[memory] = size;
  return memory;
}

void Allocator::deallocate(void* memory, size_t) {
  if (!memory || is_forked()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto used = used_.find(memory);
    RUNE_CHECK(used != used_.end(), "memory is freed that was not allocated here, or twice");
    const size_t size = used->second;
    used_.erase(used);
    if (context_.is_dead()) return;
    if (cached_ + static_cast<int64_t>(size) <= limit_) {
      cached_ += static_cast<int64_t>(size);
      free_[size].push_back(memory);
      return;
    }
  }
  free_now(memory);
}

void* Allocator::take(size_t size) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto kept = free_.find(size);
  if (kept == free_.end() || kept->second.empty()) return nullptr;
  void* const memory = kept->second.back();
  kept->second.pop_back();
  cached_ -= static_cast<int64_t>(size);
  return memory;
}

Result Allocator::allocate_new(size_t size, Address& memory) {
  return pool_ ? driver().allocate_from_pool(&memory, size, pool_, context_.stream())
               : driver().allocate(&memory, size);
}

// Ignores errors. They belong to earlier commands, and the next wait reports them; or the process
// exits and the driver has ended.
void Allocator::free_now(void* memory) {
  if (context_.is_dead()) return;
  const Context::Scope scope(context_);
  if (pool_)
    driver().free_async(to_address(memory), context_.stream());
  else
    driver().free(to_address(memory));
}

void Allocator::share_with(int device) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!pool_ || !shared_with_.insert(device).second) return;
  }
  const Context::Scope scope(context_);
  PoolAccess access;
  access.device = device;
  driver().set_pool_access(pool_, &access, 1);
}

void Allocator::trim() {
  if (context_.is_dead()) return;
  const Context::Scope scope(context_);
  std::map<size_t, std::vector<void*>> all;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    all = std::exchange(free_, {});
    cached_ = 0;
  }
  for (const auto& [size, blocks] : all)
    for (void* const memory : blocks) free_now(memory);
  context_.synchronize();
  if (pool_) driver().trim_pool(pool_, 0);
}

}  // namespace rune::cuda
