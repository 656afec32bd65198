#include "runtime/memory_warmer.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/options.h"
#include "runtime/thread_pool.h"

namespace rune::runtime {

namespace {

constexpr size_t kLeastBytes = size_t{2} << 20, kMostBytes = size_t{256} << 20;  // of all blocks
constexpr size_t kPage = 4096;  // the smallest there is

std::vector<size_t> worth_warming(const std::vector<size_t>& sizes) {
  std::vector<size_t> chosen;
  size_t left = std::min(kMostBytes, static_cast<size_t>(options().allocator_cache_mib) << 20);
  for (const size_t bytes : sizes) {
    if (bytes < kLeastBytes || bytes > left) continue;
    chosen.push_back(bytes);
    left -= bytes;
  }
  return chosen;
}

}  // namespace

MemoryWarmer::MemoryWarmer(Allocator& allocator, const std::vector<size_t>& sizes)
    : allocator_(allocator), sizes_(worth_warming(sizes)) {
  if (sizes_.empty() || num_threads() == 1) return;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {  // too many threads
  }
}

MemoryWarmer::~MemoryWarmer() {
  stops_ = true;
  if (thread_.joinable()) thread_.join();
}

void MemoryWarmer::run() {
  std::vector<std::pair<void*, size_t>> blocks;
  try {
    for (const size_t bytes : sizes_) {
      if (stops_) break;
      blocks.emplace_back(allocator_.allocate(bytes), bytes);
      write_pages(static_cast<char*>(blocks.back().first), bytes);
    }
  } catch (const UserError&) {  // no memory: the run says so
  }
  for (const auto& [memory, bytes] : blocks) allocator_.deallocate(memory, bytes);
}

void MemoryWarmer::write_pages(char* memory, size_t bytes) const {
  for (size_t at = 0; at < bytes && !stops_; at += kPage)
    *static_cast<volatile char*>(memory + at) = 0;
}

}  // namespace rune::runtime
