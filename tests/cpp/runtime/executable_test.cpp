#include "runtime/executable.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

#include "base/error.h"
#include "runtime/caching_allocator.h"

namespace rune::runtime {
namespace {

// Runs launches when told to synchronize, as a queue would, or at once.
class FakeDevice : public Device {
 public:
  class CountingAllocator : public Allocator {
   public:
    void* allocate(size_t bytes) override {
      ++live;
      return caching_allocator().allocate(bytes);
    }
    void deallocate(void* memory, size_t bytes) override {
      --live;
      caching_allocator().deallocate(memory, bytes);
    }
    std::atomic<int> live{0};
  };

  const std::string& name() const override { return name_; }
  const Capabilities& capabilities() const override { return capabilities_; }
  CountingAllocator& allocator() override { return allocator_; }
  Compiler& compiler() override { throw std::logic_error("nothing to compile"); }
  void synchronize() override {
    ++synchronizations;
    run_queue();
  }
  void copy_in(void* device, const void* host, size_t bytes) override {
    std::memcpy(device, host, bytes);
  }
  void copy_out(void* host, const void* device, size_t bytes) override {
    run_queue();
    std::memcpy(host, device, bytes);
  }
  void copy(void* to, const void* from, size_t bytes) override {
    enqueue([=] { std::memmove(to, from, bytes); });
  }
  void enqueue(std::function<void()> work) {
    if (deferred) {
      const std::lock_guard<std::mutex> lock(mutex_);
      queue_.push_back(std::move(work));
    } else {
      work();
    }
  }

  bool deferred = false;
  std::atomic<int> synchronizations{0};

 private:
  void run_queue() {
    std::vector<std::function<void()>> queue;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      queue.swap(queue_);
    }
    for (const auto& work : queue) work();
  }

  std::string name_ = "fake";
  Capabilities capabilities_;
  CountingAllocator allocator_;
  std::mutex mutex_;
  std::vector<std::function<void()>> queue_;
};

class FakeProgram : public Program {
 public:
  using Body = std::function<void(std::vector<int*>, std::vector<int64_t>)>;
  FakeProgram(FakeDevice* device, Body body) : device_(device), body_(std::move(body)) {}
  void launch(const LaunchArguments& arguments) override {
    std::vector<int*> buffers;
    for (void* buffer : arguments.buffers) buffers.push_back(static_cast<int*>(buffer));
    std::vector<int64_t> vars(arguments.vars.begin(), arguments.vars.end());
    device_->enqueue([this, buffers, vars] { body_(buffers, vars); });
  }

 private:
  FakeDevice* const device_;
  const Body body_;
};

constexpr size_t kCount = 4;
constexpr size_t kBytes = kCount * sizeof(int);

Slot input(int64_t index, int64_t offset = 0) {
  return {Slot::Kind::Input, index, offset};
}
Slot output(int64_t index, int64_t offset = 0) {
  return {Slot::Kind::Output, index, offset};
}
Slot temporary(int64_t offset) {
  return {Slot::Kind::Temporary, 0, offset};
}
Slot constant(int64_t index, int64_t offset = 0) {
  return {Slot::Kind::Constant, index, offset};
}

class ExecutableTest : public testing::Test {
 protected:
  ExecutableTest() {
    executable.device = device;
    executable.num_inputs = 1;
    executable.num_outputs = 1;
  }
  std::shared_ptr<Program> program(FakeProgram::Body body) {
    return std::make_shared<FakeProgram>(device.get(), std::move(body));
  }
  // to = from + by, elementwise.
  Launch add(Slot to, Slot from, int by) {
    return {program([by](const std::vector<int*>& b, const std::vector<int64_t>&) {
              for (size_t i = 0; i < kCount; ++i) b[0][i] = b[1][i] + by;
            }),
            {to, from}};
  }
  std::vector<int> run(std::vector<int> in, std::span<const int64_t> vars = {}) {
    std::vector<int> out(kCount, -1);
    void* const inputs[] = {in.data()};
    void* const outputs[] = {out.data()};
    executable.run(inputs, outputs, vars);
    device->synchronize();
    return out;
  }

  std::shared_ptr<FakeDevice> device = std::make_shared<FakeDevice>();
  Executable executable;
};

using Numbers = std::vector<int>;

TEST_F(ExecutableTest, RunsLaunchesInOrderThroughTheArena) {
  executable.arena_bytes = 2 * kBytes;
  executable.steps = {add(temporary(0), input(0), 1), add(temporary(kBytes), temporary(0), 10),
                      add(output(0), temporary(kBytes), 100)};
  executable.prepare();
  for (const bool deferred : {false, true}) {
    device->deferred = deferred;
    EXPECT_EQ(run({1, 2, 3, 4}), (Numbers{112, 113, 114, 115}));
    EXPECT_EQ(device->allocator().live, 0);
  }
}

TEST_F(ExecutableTest, ResolvesOffsetsAndConstants) {
  executable.constants = {{}, std::vector<uint8_t>(2 * kBytes)};
  const int values[2 * kCount] = {0, 0, 0, 0, 5, 6, 7, 8};
  std::memcpy(executable.constants[1].data(), values, sizeof values);
  executable.steps = {add(output(0), constant(1, kBytes), 1)};
  executable.prepare();
  EXPECT_TRUE(executable.constants.empty());
  EXPECT_EQ(device->allocator().live, 2);  // constants live on the device
  EXPECT_EQ(run({0, 0, 0, 0}), (Numbers{6, 7, 8, 9}));
  executable = Executable();
  EXPECT_EQ(device->allocator().live, 0);
}

TEST_F(ExecutableTest, OffsetsIntoInputs) {
  executable.steps = {add(output(0), input(0, sizeof(int)), 0)};
  executable.prepare();
  EXPECT_EQ(run({1, 2, 3, 4, 5}), (Numbers{2, 3, 4, 5}));
}

TEST_F(ExecutableTest, PassesSymbolicVariables) {
  executable.steps = {
      Launch{program([](const std::vector<int*>& b, const std::vector<int64_t>& vars) {
               for (size_t i = 0; i < kCount; ++i) b[0][i] = static_cast<int>(vars.at(i % 2));
             }),
             {output(0)}}};
  executable.prepare();
  const int64_t vars[] = {3, 9};
  EXPECT_EQ(run({0}, vars), (Numbers{3, 9, 3, 9}));
}

TEST_F(ExecutableTest, RepeatsStepsForEachNumberOfARange) {
  std::vector<std::vector<int64_t>> seen;
  const auto note =
      program([&](const std::vector<int*>&, const std::vector<int64_t>& v) { seen.push_back(v); });
  // for i in range(1, n, 2): note(i, 7); for j in range(2 * i + m - 1, -1, -4): note(j, i)
  const auto inner = std::make_shared<Body>(Body{{Launch{note, {}, {}, 0, {{3, 2}}}}});
  const Repeat in_j{3, {-1, {{2, 2}, {1, 1}}}, {-1}, -4, {}, inner};
  const auto outer = std::make_shared<Body>(Body{{Launch{note, {}, {7}, 0, {{2}}}, in_j}});
  executable.num_loop_variables = 2;
  executable.steps = {Repeat{2, {1}, {0, {{0, 1}}}, 2, {}, outer}, Launch{note, {}}};
  executable.prepare();
  for (const bool deferred : {false, true}) {
    device->deferred = deferred;
    seen.clear();
    const int64_t vars[] = {4, 3};
    run({0}, vars);
    EXPECT_EQ(seen, (std::vector<std::vector<int64_t>>{
                        {1, 7}, {4, 1}, {0, 1}, {3, 7}, {8, 3}, {4, 3}, {0, 3}, {4, 3}}));
  }
}

TEST_F(ExecutableTest, IterationsTakeBodiesInTurns) {
  std::vector<int64_t> seen;
  const auto note = [&](int64_t what) {
    return std::make_shared<Body>(Body{
        {Launch{program([&seen, what](const std::vector<int*>&, const std::vector<int64_t>& v) {
                  seen.push_back(10 * v[0] + what);
                }),
                {},
                {},
                0,
                {{1}}}}});
  };
  // Bodies 1, 2 and 3; 8 and 9 where the loop ends before the turn of 2 and 3.
  executable.num_loop_variables = 1;
  executable.steps = {
      Repeat{1, {0}, {0, {{0, 1}}}, 1, {}, note(1), {{note(2), note(8)}, {note(3), note(9)}}}};
  executable.prepare();
  const std::vector<std::vector<int64_t>> expected{
      {}, {1, 8}, {1, 12, 19}, {1, 12, 23}, {1, 12, 23, 31, 38}};
  for (const bool deferred : {false, true}) {
    device->deferred = deferred;
    for (int64_t count = 0; count < std::ssize(expected); ++count) {
      seen.clear();
      run({0}, std::vector<int64_t>{count});
      EXPECT_EQ(seen, expected[count]);
    }
  }
}

TEST_F(ExecutableTest, EndsALoopByABoolAndReadsVariables) {
  executable.arena_bytes = 2 * kBytes;
  const auto set = [&](Slot slot, const auto& value_of) {
    return Launch{program([=](const std::vector<int*>& b, const std::vector<int64_t>& v) {
                    const auto value = value_of(v[0]);
                    std::memcpy(b[0], &value, sizeof value);
                  }),
                  {slot},
                  {},
                  0,
                  {{0}}};
  };
  const Slot goes_on = temporary(0), size = temporary(kBytes);
  const auto body = std::make_shared<Body>(
      Body{{set(goes_on, [](int64_t i) { return static_cast<uint8_t>(i < 4); }),
            set(size, [](int64_t i) { return 10 * i; }), Read{1, size},
            Launch{program([](const std::vector<int*>& b, const std::vector<int64_t>& v) {
                     b[0][0] = static_cast<int>(v[0]);
                   }),
                   {output(0)},
                   {},
                   0,
                   {{1}}}}});
  executable.num_loop_variables = 2;
  executable.steps = {set(goes_on, [](int64_t) { return uint8_t{1}; }),
                      Repeat{0, {0}, {1000}, 1, goes_on, body}};
  executable.prepare();
  for (const bool deferred : {false, true}) {
    device->deferred = deferred;
    EXPECT_EQ(run({0})[0], 40);
  }
}

TEST_F(ExecutableTest, TransfersMemory) {
  executable.arena_bytes = kBytes;
  executable.steps = {Memory_Transfer{temporary(0), input(0), kBytes},
                      Memory_Transfer{output(0, sizeof(int)), temporary(0), kBytes - sizeof(int)},
                      Memory_Transfer{output(0), temporary(2 * sizeof(int)), sizeof(int)},
                      Memory_Transfer{output(0), input(0), 0}};
  executable.prepare();
  for (const bool deferred : {false, true}) {
    device->deferred = deferred;
    EXPECT_EQ(run({1, 2, 3, 4}), (Numbers{3, 1, 2, 3}));
  }
}

TEST_F(ExecutableTest, SynchronizesAndCallsTheHostAfterWhatCameBefore) {
  device->deferred = true;
  std::vector<Numbers> seen;
  executable.steps = {add(output(0), input(0), 1), Synchronization{},
                      Host_Callback{"look",
                                    [&](std::span<void* const> memory) {
                                      ASSERT_EQ(memory.size(), 2u);
                                      const int* values = static_cast<const int*>(memory[1]);
                                      seen.push_back(Numbers(values, values + kCount));
                                      static_cast<int*>(memory[1])[0] = 1000;
                                    },
                                    {input(0), output(0)}},
                      add(output(0), output(0), 1)};
  executable.prepare();
  EXPECT_EQ(run({1, 2, 3, 4}), (Numbers{1001, 4, 5, 6}));
  EXPECT_EQ(seen, (std::vector<Numbers>{{2, 3, 4, 5}}));
  EXPECT_EQ(device->synchronizations, 3);  // the step, the callback, the caller
}

TEST_F(ExecutableTest, DoesNotWaitWithoutNeed) {
  device->deferred = true;
  executable.steps = {add(output(0), input(0), 1)};
  executable.prepare();
  run({1, 2, 3, 4});
  EXPECT_EQ(device->synchronizations, 1);  // the caller's
}

TEST_F(ExecutableTest, RunsManyArguments) {
  for (const size_t count : {31, 32, 33, 100}) {
    executable.num_inputs = count;
    std::vector<Slot> slots{output(0)};
    std::vector<std::vector<int>> values;
    std::vector<void*> inputs;
    for (size_t i = 0; i < count; ++i) {
      slots.push_back(input(static_cast<int64_t>(i)));
      values.push_back({static_cast<int>(i)});
    }
    for (auto& value : values) inputs.push_back(value.data());
    executable.steps = {Launch{program([](const std::vector<int*>& b, const std::vector<int64_t>&) {
                                 *b[0] = 0;
                                 for (size_t i = 1; i < b.size(); ++i)
                                   *b[0] += static_cast<int>(i) * *b[i];
                               }),
                               slots}};
    executable.prepare();
    int sum = 0, expected = 0;
    for (size_t i = 0; i < count; ++i) expected += static_cast<int>((i + 1) * i);
    void* const outputs[] = {&sum};
    executable.run(inputs, outputs);
    EXPECT_EQ(sum, expected) << count;
  }
}

TEST_F(ExecutableTest, ReusesTheArena) {
  std::set<void*> arenas;
  executable.arena_bytes = 1 << 16;
  executable.steps = {Host_Callback{
      "arena", [&](std::span<void* const> m) { arenas.insert(m[0]); }, {temporary(0)}}};
  executable.prepare();
  for (int i = 0; i < 20; ++i) run({0, 0, 0, 0});
  EXPECT_EQ(arenas.size(), 1u);
}

TEST_F(ExecutableTest, AnErrorStopsTheRunAndReturnsTheArena) {
  device->deferred = true;
  executable.arena_bytes = kBytes;
  int later = 0, launched = 0;
  executable.steps = {
      add(temporary(0), input(0), 1),
      Launch{program([&](const std::vector<int*>&, const std::vector<int64_t>&) { ++launched; }),
             {temporary(0)}},
      Host_Callback{
          "fails", [](std::span<void* const>) { throw std::runtime_error("callback failed"); }, {}},
      Host_Callback{"later", [&](std::span<void* const>) { ++later; }, {}}};
  executable.prepare();
  EXPECT_THROW(run({1, 2, 3, 4}), std::runtime_error);
  EXPECT_EQ(launched, 1);
  EXPECT_EQ(later, 0);
  EXPECT_EQ(device->allocator().live, 0);
}

TEST_F(ExecutableTest, RunsFromSeveralThreadsAtOnce) {
  executable.arena_bytes = kBytes;
  executable.constants = {std::vector<uint8_t>(kBytes, 0)};
  executable.steps = {add(temporary(0), input(0), 1), add(temporary(0), temporary(0), 1),
                      add(output(0), temporary(0), 1)};
  executable.prepare();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 500; ++i)
        wrong += run({t, i, t + i, 0}) != Numbers{t + 3, i + 3, t + i + 3, 3};
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(device->allocator().live, 1);  // the constant
}

TEST_F(ExecutableTest, RefusesTheWrongNumberOfArgumentsAndAMissingPreparation) {
  executable.steps = {add(output(0), input(0), 0)};
  executable.prepare();
  EXPECT_THROW(executable.run({}, {}), InternalError);
  Executable unprepared;
  unprepared.device = device;
  unprepared.constants = {{1}};
  EXPECT_THROW(unprepared.run({}, {}), InternalError);
}

}  // namespace
}  // namespace rune::runtime
