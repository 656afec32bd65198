// Fresh pages while other work goes on: a program's first run would wait for the system to clear
// them.
#pragma once

#include <atomic>
#include <thread>
#include <vector>

#include "runtime/device.h"

namespace rune::runtime {

// From construction to destruction, another thread writes to blocks of `allocator`, which must be
// thread-safe and give host memory; then it frees them, and allocations of the same sizes find
// their pages in place. Blocks of less than 2 MiB are left out, and those beyond 256 MiB, or what
// freed memory may take (RUNE_JIT_ALLOCATOR_CACHE_MIB), in all. Does nothing where there is one
// core or no thread can start.
class MemoryWarmer {
 public:
  MemoryWarmer(Allocator& allocator, const std::vector<size_t>& sizes);
  ~MemoryWarmer();
  MemoryWarmer(const MemoryWarmer&) = delete;
  MemoryWarmer& operator=(const MemoryWarmer&) = delete;

 private:
  void run();
  void write_pages(char* memory, size_t bytes) const;

  Allocator& allocator_;
  const std::vector<size_t> sizes_;
  std::atomic<bool> stops_{false};
  std::thread thread_;
};

}  // namespace rune::runtime
