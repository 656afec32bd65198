// Memory of a device, which is kept for reuse after it is freed.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>
#include <vector>

#include "backends/cuda/context.h"
#include "runtime/device.h"

namespace rune::cuda {

// Keeps freed blocks by size. A block may be reused at once, because everything that uses it runs
// in the context's stream in the order of the calls. Freed blocks take at most
// RUNE_JIT_ALLOCATOR_CACHE_MIB. Beyond that the driver's pool keeps them, up to a quarter of the
// device's memory. Thread-safe.
class Allocator : public runtime::Allocator {
 public:
  explicit Allocator(Context& context);

  // Returns memory that is aligned to 256 bytes. Throws UserError(Memory), with the sizes, if the
  // device has no room even after the freed blocks have been returned to it.
  void* allocate(size_t bytes) override;
  // Frees memory. Running launches may still use it. Does nothing for null.
  void deallocate(void* memory, size_t bytes) override;
  bool defers_frees() const override { return true; }
  void trim() override;
  // Lets another device copy from the pool's memory directly, if the cards' connection allows it.
  void share_with(int device);

 private:
  void* take(size_t size);
  Result allocate_new(size_t size, Address& memory);
  void free_now(void* memory);

  Context& context_;
  PoolHandle pool_ = nullptr;  // null: the driver has none, and each call waits for the device
  int64_t limit_ = 0;
  std::mutex mutex_;                           // guards what follows
  std::map<size_t, std::vector<void*>> free_;  // by size
  std::unordered_map<void*, size_t> used_;     // sizes of blocks in use
  int64_t cached_ = 0;
  std::set<int> shared_with_;  // devices
};

}  // namespace rune::cuda
