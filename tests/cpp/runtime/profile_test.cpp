#include "runtime/profile.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "base/error.h"
#include "runtime/caching_allocator.h"
#include "runtime/executable.h"
#include "runtime/host_device.h"

namespace rune::runtime {
namespace {

class PlainDevice : public HostDevice {
 public:
  const std::string& name() const override { return name_; }
  const Capabilities& capabilities() const override { return capabilities_; }
  Compiler& compiler() override { throw std::logic_error("nothing to compile"); }

 private:
  std::string name_ = "fake";
  Capabilities capabilities_;
};

struct Increment : Program {
  void launch(const LaunchArguments& arguments) override {
    ++*static_cast<int*>(arguments.buffers[0]);
  }
};

struct Together : Sequence {
  void launch(std::span<const LaunchArguments> arguments) override {
    for (const LaunchArguments& a : arguments) *static_cast<int*>(a.buffers[0]) += 100;
  }
};

Launch increment() {
  return {std::make_shared<Increment>(), {{Slot::Kind::Output, 0, 0}}};
}

StepInfo named(const char* name) {
  StepInfo info;
  info.name = name;
  return info;
}

class ProfileTest : public testing::Test {
 protected:
  // Two launches as one command, then a callback: three steps.
  ProfileTest() {
    executable.device = std::make_shared<PlainDevice>();
    executable.num_outputs = 1;
    executable.arena_bytes = 1 << 20;
    executable.steps.emplace_back(Launch_Sequence{
        std::make_shared<Body>(Body{{increment(), increment()}}), std::make_shared<Together>()});
    executable.steps.emplace_back(Host_Callback{"f",
                                                [this](std::span<void* const>) {
                                                  if (throws) user_error(ErrorKind::Value, "mine");
                                                },
                                                {}});
    auto info = std::make_shared<ProgramInfo>();
    info->name = "program";
    info->steps = {named("first"), named("second"), named("f")};
    executable.info = info;
    executable.prepare();
  }
  ~ProfileTest() override {
    if (is_profiling()) end_profile();
  }
  int run() {
    int result = 0;
    void* const outputs[] = {&result};
    executable.run({}, outputs);
    return result;
  }

  Executable executable;
  bool throws = false;
};

TEST_F(ProfileTest, CountsTheStepsOfPrograms) {
  EXPECT_EQ(run(), 200);  // without a profile, as one command
  begin_profile();
  EXPECT_EQ(run(), 2);
  EXPECT_EQ(run(), 2);
  const Profile profile = end_profile();
  EXPECT_EQ(run(), 200);
  ASSERT_EQ(profile.programs.size(), 1u);
  const ProgramTotals& totals = profile.programs[0];
  EXPECT_EQ(totals.info, executable.info);
  EXPECT_EQ(totals.runs, 2);
  ASSERT_EQ(totals.steps.size(), 3u);
  double sum = 0;
  for (const StepTotals& step : totals.steps) {
    EXPECT_EQ(step.runs, 2);
    EXPECT_LE(step.least_ns, step.most_ns);
    EXPECT_LE(step.most_ns, step.total_ns);
    sum += step.total_ns;
  }
  EXPECT_LE(sum, totals.total_ns);
  EXPECT_TRUE(totals.steps[0].by_device);
  EXPECT_FALSE(totals.steps[2].by_device);  // of the host
  EXPECT_EQ(profile.intervals.size(), 2u * (3 + 1));
  for (const Interval& interval : profile.intervals) {
    EXPECT_GE(interval.begin_ns, profile.begin_ns);
    EXPECT_LE(static_cast<double>(interval.begin_ns) + interval.ns,
              static_cast<double>(profile.end_ns));
  }
}

TEST_F(ProfileTest, AStepThatThrowsEndsTheRun) {
  begin_profile();
  throws = true;
  EXPECT_THROW(run(), UserError);
  const Profile profile = end_profile();
  ASSERT_EQ(profile.programs.size(), 1u);
  EXPECT_EQ(profile.programs[0].runs, 0);
  EXPECT_EQ(profile.programs[0].steps[1].runs, 1);
  EXPECT_EQ(profile.programs[0].steps[2].runs, 0);
}

TEST_F(ProfileTest, FollowsTheMemoryInUse) {
  CachingAllocator& allocator = caching_allocator();
  void* const before = allocator.allocate(1 << 20);
  const int64_t in_use = allocator.bytes_in_use();
  begin_profile();
  void* const block = allocator.allocate(1 << 20);
  EXPECT_EQ(allocator.bytes_in_use(), in_use + (1 << 20));
  allocator.deallocate(before, 1 << 20);
  allocator.deallocate(block, 1 << 20);
  run();  // its temporaries
  const MemoryUse use = end_profile().memory.at("cpu");
  EXPECT_EQ(use.at_begin, in_use);
  EXPECT_EQ(use.peak, in_use + (1 << 20));
  EXPECT_EQ(use.now, in_use - (1 << 20));
  EXPECT_EQ(use.now, allocator.bytes_in_use());
  ASSERT_EQ(use.points.size(), 5u);
  EXPECT_EQ(use.points[3].bytes, in_use);
}

TEST_F(ProfileTest, OneAtATime) {
  EXPECT_THROW(end_profile(), UserError);
  begin_profile();
  EXPECT_THROW(begin_profile(), UserError);
  note_call("f", profile_clock_ns());
  const Profile profile = end_profile();
  EXPECT_EQ(profile.functions, std::vector<std::string>{"f"});
  note_call("g", profile_clock_ns());  // nothing
  begin_profile();
  EXPECT_TRUE(end_profile().functions.empty());
}

TEST_F(ProfileTest, Threads) {
  begin_profile();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([this] {
      for (int k = 0; k < 100; ++k) run();
    });
  for (std::thread& thread : threads) thread.join();
  const Profile profile = end_profile();
  EXPECT_EQ(profile.programs.at(0).runs, 400);
  EXPECT_EQ(profile.memory.at("cpu").now, profile.memory.at("cpu").at_begin);
}

}  // namespace
}  // namespace rune::runtime
