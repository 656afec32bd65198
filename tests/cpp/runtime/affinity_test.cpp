#include "runtime/affinity.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

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
  if (CPU_COUNT(&all) < 2) GTEST_SKIP() << "one core";
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
    allow_core(here);
    now = mask_of_this_thread();
    EXPECT_TRUE(CPU_EQUAL(&now, &all));
  }).join();
}

TEST(Affinity, RespectsTheMaskOfTheProcess) {
  const cpu_set_t all = mask_of_process();
  if (CPU_COUNT(&all) < 2) GTEST_SKIP() << "one core";
  const int here = current_core();
  int other = 0;
  while (other == here || !CPU_ISSET(other, &all)) ++other;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(here, &one);
  ASSERT_EQ(sched_setaffinity(getpid(), sizeof one, &one), 0);
  EXPECT_EQ(available_cores(), 1);
  std::thread([&] {  // has the mask of the thread that started it
    EXPECT_FALSE(keep_off_core(pthread_self(), here));
    allow_core(other);
    cpu_set_t now = mask_of_this_thread();
    EXPECT_TRUE(CPU_EQUAL(&now, &one));
  })
      .join();
  ASSERT_EQ(sched_setaffinity(getpid(), sizeof all, &all), 0);
}
#endif

}  // namespace
}  // namespace rune::runtime
