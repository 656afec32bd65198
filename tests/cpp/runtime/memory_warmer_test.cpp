#include "runtime/memory_warmer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/thread_pool.h"

namespace rune::runtime {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

// Blocks whose bytes are all 1, which are kept when they are freed.
class Recorder : public Allocator {
 public:
  void* allocate(size_t bytes) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (bytes == refused) throw UserError(ErrorKind::Runtime, "out of memory");
    blocks_.push_back(std::vector<char>(bytes, 1));
    in_use_.insert(blocks_.back().data());
    return blocks_.back().data();
  }
  void deallocate(void* memory, size_t bytes) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    EXPECT_EQ(in_use_.erase(static_cast<char*>(memory)), 1u);
    freed_.emplace_back(static_cast<char*>(memory), bytes);
  }
  std::vector<std::pair<char*, size_t>> freed() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return freed_;
  }
  bool all_freed() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return in_use_.empty();
  }

  size_t refused = 0;

 private:
  std::mutex mutex_;
  std::vector<std::vector<char>> blocks_;
  std::set<char*> in_use_;
  std::vector<std::pair<char*, size_t>> freed_;
};

// Warms until as many blocks have been freed.
void warm(Recorder& allocator, const std::vector<size_t>& sizes, size_t count) {
  const MemoryWarmer warmer(allocator, sizes);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (allocator.freed().size() < count && std::chrono::steady_clock::now() < end)
    std::this_thread::yield();
}

TEST(MemoryWarmer, WritesToEveryPage) {
  if (num_threads() == 1) GTEST_SKIP() << "one core";
  Recorder allocator;
  warm(allocator, {4 * kMiB, 3 * kMiB + 1}, 2);
  const auto freed = allocator.freed();
  ASSERT_EQ(freed.size(), 2u);
  EXPECT_EQ(freed[0].second, 4 * kMiB);
  EXPECT_EQ(freed[1].second, 3 * kMiB + 1);
  for (const auto& [memory, bytes] : freed)
    for (size_t at = 0; at < bytes; at += 4096) ASSERT_EQ(memory[at], 0) << at;
}

TEST(MemoryWarmer, LeavesOutSmallAndManyBlocks) {
  if (num_threads() == 1) GTEST_SKIP() << "one core";
  Recorder allocator;
  warm(allocator, {0, kMiB, 300 * kMiB, 2 * kMiB, 255 * kMiB, 3 * kMiB}, 2);
  const auto freed = allocator.freed();
  ASSERT_EQ(freed.size(), 2u);
  EXPECT_EQ(freed[0].second, 2 * kMiB);
  EXPECT_EQ(freed[1].second, 3 * kMiB);
}

TEST(MemoryWarmer, FreesWhatItHasWhenItEnds) {
  if (num_threads() == 1) GTEST_SKIP() << "one core";
  Recorder allocator;
  for (int i = 0; i < 50; ++i) MemoryWarmer(allocator, {8 * kMiB});
  EXPECT_TRUE(allocator.all_freed());
  allocator.refused = 4 * kMiB;
  warm(allocator, {2 * kMiB, 4 * kMiB}, 1);
  EXPECT_TRUE(allocator.all_freed());
}

}  // namespace
}  // namespace rune::runtime
