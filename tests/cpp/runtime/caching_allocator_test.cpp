#include "runtime/caching_allocator.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/options.h"

namespace rune::runtime {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

// Starts and ends with an empty cache, and restores the limit.
class CachingAllocatorTest : public testing::Test {
 protected:
  CachingAllocatorTest() : limit_(options().allocator_cache_mib) { allocator_.trim(); }
  ~CachingAllocatorTest() override {
    options().allocator_cache_mib = limit_;
    allocator_.trim();
    EXPECT_EQ(cached(), 0);
  }
  int64_t cached() const { return allocator_.bytes_cached(); }

  CachingAllocator& allocator_ = caching_allocator();

 private:
  const int limit_;
};

size_t alignment_of(size_t bytes) {
  if (bytes >= 2 * kMiB) return 2 * kMiB;
  return bytes >= 64 << 10 ? 4096 : 64;
}

TEST_F(CachingAllocatorTest, AlignsAndGivesAllBytes) {
  for (const size_t bytes :
       {size_t{0}, size_t{1}, size_t{63}, size_t{64}, size_t{65}, size_t{4095}, size_t{4096},
        size_t{4097}, size_t{5000}, size_t{65536}, size_t{100'000}, kMiB, 2 * kMiB - 1, 2 * kMiB,
        2 * kMiB + 1, 3 * kMiB, 17 * kMiB + 123}) {
    void* const memory = allocator_.allocate(bytes);
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % alignment_of(bytes), 0u) << bytes;
    std::memset(memory, 0xab, bytes);
    allocator_.deallocate(memory, bytes);
  }
}

TEST_F(CachingAllocatorTest, EverySizeFitsItsBlock) {
  for (size_t bytes = 0; bytes < 70'000; bytes += 61) {
    void* const memory = allocator_.allocate(bytes);
    std::memset(memory, 1, bytes);
    allocator_.deallocate(memory, bytes);
  }
}

TEST_F(CachingAllocatorTest, LiveBlocksDoNotOverlap) {
  std::mt19937 random(1);
  std::vector<std::pair<char*, size_t>> live;
  for (int i = 0; i < 3000; ++i) {
    if (live.size() > 40) {
      const size_t k = random() % live.size();
      allocator_.deallocate(live[k].first, live[k].second);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(k));
    }
    const size_t bytes = random() % (size_t{1} << (random() % 22 + 1));
    live.push_back({static_cast<char*>(allocator_.allocate(bytes)), bytes});
  }
  std::sort(live.begin(), live.end());
  for (size_t i = 1; i < live.size(); ++i)
    EXPECT_LE(live[i - 1].first + std::max<size_t>(1, live[i - 1].second), live[i].first);
  for (const auto& [memory, bytes] : live) allocator_.deallocate(memory, bytes);
}

TEST_F(CachingAllocatorTest, ReusesFreedBlocks) {
  for (const size_t bytes : {size_t{100}, size_t{4096}, size_t{10'000}, 3 * kMiB, 64 * kMiB}) {
    void* const first = allocator_.allocate(bytes);
    allocator_.deallocate(first, bytes);
    EXPECT_GE(cached(), static_cast<int64_t>(bytes));
    void* const second = allocator_.allocate(bytes);
    EXPECT_EQ(first, second) << bytes;
    allocator_.deallocate(second, bytes);
  }
}

TEST_F(CachingAllocatorTest, TrimEmptiesTheCache) {
  for (const size_t bytes : {size_t{100}, size_t{10'000}, 3 * kMiB})
    allocator_.deallocate(allocator_.allocate(bytes), bytes);
  EXPECT_GT(cached(), 3 << 20);
  allocator_.trim();
  EXPECT_EQ(cached(), 0);
}

TEST_F(CachingAllocatorTest, KeepsToItsLimitAndEvictsTheOldest) {
  options().allocator_cache_mib = 20;
  void* const a = allocator_.allocate(8 * kMiB);
  void* const b = allocator_.allocate(10 * kMiB);
  void* const c = allocator_.allocate(7 * kMiB);
  allocator_.deallocate(a, 8 * kMiB);
  allocator_.deallocate(b, 10 * kMiB);
  EXPECT_EQ(cached(), 18 << 20);
  allocator_.deallocate(c, 7 * kMiB);  // 25 MiB: a, freed first, goes
  EXPECT_EQ(cached(), 17 << 20);
  EXPECT_EQ(allocator_.allocate(10 * kMiB), b);
  EXPECT_EQ(allocator_.allocate(7 * kMiB), c);
  EXPECT_EQ(cached(), 0);
  allocator_.deallocate(b, 10 * kMiB);
  allocator_.deallocate(c, 7 * kMiB);
  // A block larger than the limit is not kept, and pushes nothing out.
  allocator_.deallocate(allocator_.allocate(32 * kMiB), 32 * kMiB);
  EXPECT_EQ(cached(), 17 << 20);
}

TEST_F(CachingAllocatorTest, KeepsNothingWithoutACache) {
  options().allocator_cache_mib = 0;
  for (const size_t bytes : {size_t{8}, size_t{4096}, size_t{100'000}, 4 * kMiB}) {
    allocator_.deallocate(allocator_.allocate(bytes), bytes);
    EXPECT_EQ(cached(), 0) << bytes;
  }
}

TEST_F(CachingAllocatorTest, ManySmallBlocksGoThroughTheSharedCache) {
  std::vector<void*> blocks;
  for (int i = 0; i < 1000; ++i) blocks.push_back(allocator_.allocate(200));
  const std::set<void*> distinct(blocks.begin(), blocks.end());
  EXPECT_EQ(distinct.size(), 1000u);
  for (void* block : blocks) allocator_.deallocate(block, 200);
  EXPECT_EQ(cached(), 1000 * 256);
  for (void*& block : blocks) EXPECT_TRUE(distinct.count(block = allocator_.allocate(200)));
  EXPECT_EQ(cached(), 0);
  for (void* block : blocks) allocator_.deallocate(block, 200);
}

TEST_F(CachingAllocatorTest, FailsWithTheSize) {
  for (const size_t bytes : {size_t{1} << 47, (size_t{1} << 47) + 1, size_t{1} << 62, ~size_t{0}}) {
    try {
      allocator_.deallocate(allocator_.allocate(bytes), bytes);
      FAIL() << bytes;
    } catch (const UserError& e) {
      EXPECT_EQ(e.kind(), ErrorKind::Memory);
      EXPECT_NE(std::string(e.what()).find(std::to_string(bytes)), std::string::npos) << e.what();
    }
  }
}

TEST_F(CachingAllocatorTest, IgnoresNull) {
  allocator_.deallocate(nullptr, 100);
}

// Threads fill blocks with a number of their own, hand some to each other, and check them.
TEST_F(CachingAllocatorTest, ThreadsShareIt) {
  struct Item {
    unsigned char* memory;
    size_t bytes;
    unsigned char mark;
  };
  std::mutex mutex;
  std::vector<Item> shared;
  std::atomic<int> wrong{0};
  const auto check_and_free = [&](const Item& item) {
    for (size_t i = 0; i < item.bytes; ++i) wrong += item.memory[i] != item.mark;
    allocator_.deallocate(item.memory, item.bytes);
  };
  const auto work = [&](int thread) {
    std::mt19937 random(thread);
    for (int i = 0; i < 2000; ++i) {
      const size_t bytes = i % 100 == 0 ? 3 * kMiB : random() % 6000;
      const auto mark = static_cast<unsigned char>(random());
      Item item{static_cast<unsigned char*>(allocator_.allocate(bytes)),
                std::min<size_t>(bytes, 6000), mark};
      std::memset(item.memory, mark, item.bytes);
      item.bytes = bytes > 6000 ? bytes : item.bytes;
      if (bytes > 6000) {
        allocator_.deallocate(item.memory, bytes);
        continue;
      }
      std::unique_lock<std::mutex> lock(mutex);
      shared.push_back(item);
      const size_t k = random() % shared.size();
      const Item mine = shared[k];
      if (i % 3 == 0) continue;
      shared[k] = shared.back();
      shared.pop_back();
      lock.unlock();
      check_and_free(mine);
    }
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) threads.emplace_back(work, t);
  for (std::thread& thread : threads) thread.join();
  for (const Item& item : shared) check_and_free(item);
  EXPECT_EQ(wrong, 0);
}

TEST_F(CachingAllocatorTest, OtherThreadsFollowATrim) {
  std::atomic<int> stage{0};
  const auto wait_for = [&](int wanted) {
    while (stage < wanted) std::this_thread::yield();
  };
  std::thread other([&] {
    allocator_.deallocate(allocator_.allocate(100), 100);
    stage = 1;
    wait_for(2);
    allocator_.deallocate(allocator_.allocate(1000), 1000);  // drops the 128 bytes
    stage = 3;
    wait_for(4);
  });
  wait_for(1);
  EXPECT_EQ(cached(), 128);
  allocator_.trim();
  stage = 2;
  wait_for(3);
  EXPECT_EQ(cached(), 1024);
  stage = 4;
  other.join();
  EXPECT_EQ(cached(), 0);  // a thread's blocks go with it
}

// Frees a block while its thread's variables are destroyed.
struct FreesAtExit {
  void* memory = nullptr;
  ~FreesAtExit() {
    caching_allocator().deallocate(memory, 48);
    caching_allocator().deallocate(caching_allocator().allocate(48), 48);
  }
};

TEST_F(CachingAllocatorTest, WorksWhileAThreadEnds) {
  std::thread([] {
    // Constructed before the thread's cache, so destroyed after it.
    static thread_local FreesAtExit at_exit;
    at_exit.memory = nullptr;
    at_exit.memory = caching_allocator().allocate(48);
  }).join();
  EXPECT_EQ(cached(), 64);  // in the shared cache
}

#if !defined(__SANITIZE_THREAD__)
TEST_F(CachingAllocatorTest, WorksInTheChildOfAFork) {
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) allocator_.deallocate(allocator_.allocate(100'000), 100'000);
  });
  void* const memory = allocator_.allocate(5000);
  for (int i = 0; i < 10; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      allocator_.deallocate(memory, 5000);
      _exit(allocator_.allocate(5000) == memory ? 7 : 8);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
  }
  stop = true;
  busy.join();
  allocator_.deallocate(memory, 5000);
}
#endif

}  // namespace
}  // namespace rune::runtime
