#include "runtime/affinity.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace rune::runtime {
namespace {

TEST(Affinity, CountsCores) {
  EXPECT_GE(available_cores(), 1);
  EXPECT_GE(current_core(), -1);
}

#if defined(__linux__)
cpu_set_t mask_of_process() {
  cpu_set_t mask;
  EXPECT_EQ(sched_getaffinity(getpid(), sizeof mask, &mask), 0);
  return mask;
}

cpu_set_t mask_of_this_thread() {
  cpu_set_t mask;
  EXPECT_EQ(pthread_getaffinity_np(pthread_self(), sizeof mask, &mask), 0);
  return mask;
}

TEST(Affinity, AThreadIsKeptOffACoreUntilItIsAllowedAgain) {
  const cpu_set_t all = mask_of_process();
  if (CPU_COUNT(&all) < 2) GTEST_SKIP() << "needs two cores";
  EXPECT_LE(available_cores(), CPU_COUNT(&all));
  std::thread([&] {
    const int here = current_core();
    EXPECT_TRUE(keep_off_core(pthread_self(), here));
    cpu_set_t others = all;
    CPU_CLR(here, &others);
    cpu_set_t now = mask_of_this_thread();
    EXPECT_TRUE(CPU_EQUAL(&now, &others));
    EXPECT_NE(current_core(), here);
    now = mask_of_process();
    EXPECT_TRUE(CPU_EQUAL(&now, &all));
    use_process_cores();
    now = mask_of_this_thread();
    EXPECT_TRUE(CPU_EQUAL(&now, &all));
  }).join();
}

TEST(Affinity, RespectsTheMaskOfTheProcess) {
  const cpu_set_t all = mask_of_process();
  if (CPU_COUNT(&all) < 2) GTEST_SKIP() << "needs two cores";
  const int here = current_core();
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(here, &one);
  ASSERT_EQ(sched_setaffinity(getpid(), sizeof one, &one), 0);
  EXPECT_EQ(available_cores(), 1);
  std::thread([&] {  // has the mask of the thread that started it
    EXPECT_FALSE(keep_off_core(pthread_self(), here));
    EXPECT_EQ(pthread_setaffinity_np(pthread_self(), sizeof all, &all), 0);
    use_process_cores();
    cpu_set_t now = mask_of_this_thread();
    EXPECT_TRUE(CPU_EQUAL(&now, &one));
  })
      .join();
  ASSERT_EQ(sched_setaffinity(getpid(), sizeof all, &all), 0);
}

// A folder with files of control groups, of both versions.
class Groups {
 public:
  Groups() : folder_(testing::TempDir() + "groups" + std::to_string(getpid())) {}
  ~Groups() { std::filesystem::remove_all(folder_); }
  void write(const std::string& file, const std::string& text) {
    const std::filesystem::path path = folder_ + file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  int cores(const std::string& membership) const { return quota_cores(membership, folder_); }

 private:
  const std::string folder_;
};

TEST(Quota, IsThatOfTheProcesssGroupAndOfThoseAboveIt) {
  Groups groups;
  EXPECT_EQ(groups.cores("0::/\n"), 0);
  groups.write("/cpu.max", "max 100000");
  groups.write("/user/cpu.max", "400000 100000");
  groups.write("/user/mine/cpu.max", "150000 100000");
  groups.write("/user/mine/inner/cpu.max", "max 100000");
  EXPECT_EQ(groups.cores("0::/\n"), 0);
  EXPECT_EQ(groups.cores("0::/user\n"), 4);
  EXPECT_EQ(groups.cores("0::/user/mine\n"), 2);
  EXPECT_EQ(groups.cores("0::/user/mine/inner\n"), 2);
  EXPECT_EQ(groups.cores("0::/user/other\n"), 4);
  EXPECT_EQ(groups.cores("no group"), 0);
}

TEST(Quota, OfVersionOne) {
  Groups groups;
  groups.write("/cpu,cpuacct/job/cpu.cfs_quota_us", "250000");
  groups.write("/cpu,cpuacct/job/cpu.cfs_period_us", "100000");
  groups.write("/cpu,cpuacct/free/cpu.cfs_quota_us", "-1");
  groups.write("/cpu,cpuacct/free/cpu.cfs_period_us", "100000");
  EXPECT_EQ(groups.cores("5:devices:/job\n3:cpu,cpuacct:/free\n0::/\n"), 0);
  EXPECT_EQ(groups.cores("5:devices:/\n3:cpu,cpuacct:/job\n0::/\n"), 3);
  // A container's own group is mounted as the root, and the path is the host's.
  groups.write("/cpu/cpu.cfs_quota_us", "100000");
  groups.write("/cpu/cpu.cfs_period_us", "100000");
  EXPECT_EQ(groups.cores("3:cpu,cpuacct:/docker/0123\n"), 1);
}
#endif

}  // namespace
}  // namespace rune::runtime
