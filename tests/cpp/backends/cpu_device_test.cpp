#include "backends/cpu/cpu_device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <thread>

#include "backends/cpu/cpu_capabilities.h"
#include "base/error.h"
#include "runtime/executable.h"
#include "runtime/thread_pool.h"

namespace rune::runtime {
namespace {

// Kernels as a compiler would give them: out[t] = 10 * in[t] + vars[0], one task an element.
void scale(void* const* buffers, const int64_t* vars, int64_t begin, int64_t end) {
  auto* out = static_cast<int64_t*>(buffers[0]);
  const auto* in = static_cast<const int64_t*>(buffers[1]);
  for (int64_t t = begin; t < end; ++t) out[t] = 10 * in[t] + vars[0];
}

void negate(void* const* buffers, const int64_t*, int64_t begin, int64_t end) {
  auto* out = static_cast<int64_t*>(buffers[0]);
  const auto* in = static_cast<const int64_t*>(buffers[1]);
  for (int64_t t = begin; t < end; ++t) out[t] = -in[t];
}

// Notes in out[t] whether task t finds in scratch memory what task `previous` has left there.
void remember(void* const* buffers, const int64_t*, int64_t begin, int64_t end) {
  auto* out = static_cast<int64_t*>(buffers[0]);
  auto* scratch = static_cast<int64_t*>(buffers[1]);
  int64_t previous = *static_cast<const int64_t*>(buffers[2]);
  for (int64_t t = begin; t < end; ++t) {
    out[t] = previous < 0 ? 2 : *scratch == previous;
    *scratch = previous = t;
  }
}

std::vector<KernelSource> two_sources(int64_t grid, double estimated_ns) {
  std::vector<KernelSource> sources(2);
  sources[0].name = "scale";
  sources[0].text = "the module";
  sources[1].name = "negate";
  for (KernelSource& source : sources) {
    source.grid = grid;
    source.estimated_ns = estimated_ns;
  }
  return sources;
}

class CpuDeviceTest : public testing::Test {
 protected:
  ~CpuDeviceTest() override { set_compile_hook(nullptr); }

  void use_functions() {
    set_compile_hook([this](const std::string& text, const std::vector<std::string>& names) {
      module_texts.push_back(text);
      CompiledModule module;
      for (const std::string& name : names)
        module.entry_points.push_back(name == "scale"      ? reinterpret_cast<void*>(&scale)
                                      : name == "negate"   ? reinterpret_cast<void*>(&negate)
                                      : name == "remember" ? reinterpret_cast<void*>(&remember)
                                                           : nullptr);
      module.keep_alive = code;
      return module;
    });
  }
  // The message of the error that compiling throws.
  static std::string compile_error(std::span<const KernelSource> sources) {
    try {
      cpu_device()->compiler().compile(sources);
    } catch (const UserError& e) {
      EXPECT_EQ(e.kind(), ErrorKind::Runtime);
      return e.what();
    }
    return "";
  }

  std::vector<std::string> module_texts;
  std::shared_ptr<int> code = std::make_shared<int>(0);
};

TEST_F(CpuDeviceTest, DevicesHaveNamesOfTheirOwnAndOneMemory) {
  EXPECT_EQ(cpu_device()->name(), "cpu");
  EXPECT_EQ(cpu_device(1)->name(), "cpu:1");
  EXPECT_EQ(&cpu_device(0)->allocator(), &cpu_device(1)->allocator());
  EXPECT_EQ(&cpu_device(0)->capabilities(), &cpu_capabilities());
  EXPECT_THROW(cpu_device(-1), UserError);
}

TEST_F(CpuDeviceTest, SaysThatNoCompilerIsRegistered) {
  set_compile_hook(nullptr);
  const std::string message = compile_error(two_sources(1, 0));
  EXPECT_NE(message.find("no LLVM compiler is registered"), std::string::npos) << message;
}

TEST_F(CpuDeviceTest, PassesTheCompilersErrorOn) {
  set_compile_hook([](const auto&, const auto&) -> CompiledModule {
    user_error(ErrorKind::Runtime, "llvm: line 3 is wrong");
  });
  EXPECT_EQ(compile_error(two_sources(1, 0)), "llvm: line 3 is wrong");
}

TEST_F(CpuDeviceTest, NamesAKernelThatTheModuleLacks) {
  use_functions();
  std::vector<KernelSource> sources = two_sources(1, 0);
  sources[1].name = "missing";
  EXPECT_NE(compile_error(sources).find("kernel missing"), std::string::npos);
  set_compile_hook([](const auto&, const auto&) { return CompiledModule{}; });
  EXPECT_THROW(cpu_device()->compiler().compile(sources), InternalError);
}

TEST_F(CpuDeviceTest, CompilesNothingWithoutSources) {
  EXPECT_TRUE(cpu_device()->compiler().compile({}).empty());
}

TEST_F(CpuDeviceTest, CompilesAModuleOnceAndKeepsItsCode) {
  use_functions();
  auto programs = cpu_device()->compiler().compile(two_sources(1, 0));
  EXPECT_EQ(module_texts, std::vector<std::string>{"the module"});
  ASSERT_EQ(programs.size(), 2u);
  set_compile_hook(nullptr);
  const std::weak_ptr<int> weak = std::exchange(code, nullptr);
  programs.pop_back();
  EXPECT_FALSE(weak.expired());
  programs.clear();
  EXPECT_TRUE(weak.expired());
}

TEST_F(CpuDeviceTest, LaunchesTheWholeGrid) {
  use_functions();
  for (const double estimated_ns : {0.0, 1e6}) {
    const auto programs = cpu_device()->compiler().compile(two_sources(105, estimated_ns));
    std::vector<int64_t> in(106), out(106, -1);
    std::iota(in.begin(), in.end(), 1);
    void* const buffers[] = {out.data(), in.data()};
    const int64_t vars[] = {4};
    programs[0]->launch({buffers, vars});
    for (int64_t i = 0; i < 105; ++i) ASSERT_EQ(out[i], 10 * (i + 1) + 4) << i;
    EXPECT_EQ(out[105], -1);  // beyond the grid
  }
}

TEST_F(CpuDeviceTest, TellsATaskWhichOneHasUsedItsScratchMemoryBefore) {
  use_functions();
  for (const double estimated_ns : {0.0, 1e9}) {
    std::vector<KernelSource> sources(1);
    sources[0].name = "remember";
    sources[0].text = "the module";
    sources[0].grid = 1000;
    sources[0].estimated_ns = estimated_ns;
    sources[0].scratch_bytes = sizeof(int64_t);
    const auto programs = cpu_device()->compiler().compile(sources);
    std::vector<int64_t> out(1000, -1);
    void* const buffers[] = {out.data()};
    for (int i = 0; i < 10; ++i) programs[0]->launch({buffers, {}});
    // Only a thread's first task finds undefined contents.
    EXPECT_EQ(std::count(out.begin(), out.end(), 0), 0);
    EXPECT_GE(std::count(out.begin(), out.end(), 2), 1);
    EXPECT_LE(std::count(out.begin(), out.end(), 2), num_threads());
  }
}

TEST_F(CpuDeviceTest, LaunchesNothingOfAnEmptyGrid) {
  use_functions();
  const auto programs = cpu_device()->compiler().compile(two_sources(0, 1e6));
  programs[1]->launch({});
}

TEST_F(CpuDeviceTest, LaunchesFromSeveralThreads) {
  use_functions();
  const auto programs = cpu_device()->compiler().compile(two_sources(500, 1e6));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::vector<int64_t> in(500), out(500);
      std::iota(in.begin(), in.end(), t);
      void* const buffers[] = {out.data(), in.data()};
      for (int run = 0; run < 100; ++run) {
        const int64_t vars[] = {run};
        programs[0]->launch({buffers, vars});
        for (int64_t i = 0; i < 500; ++i) wrong += out[i] != 10 * (i + t) + run;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(CpuDeviceTest, CopiesMemory) {
  const std::shared_ptr<Device> device = cpu_device();
  const int64_t values[] = {1, 2, 3};
  int64_t back[3] = {};
  auto* const memory = static_cast<int64_t*>(device->allocator().allocate(sizeof values));
  device->copy_in(memory, values, sizeof values);
  device->copy(memory, memory + 1, 2 * sizeof(int64_t));  // overlapping
  device->copy_out(back, memory, sizeof back);
  device->synchronize();
  EXPECT_EQ(back[0], 2);
  EXPECT_EQ(back[1], 3);
  EXPECT_EQ(back[2], 3);
  device->allocator().deallocate(memory, sizeof values);
}

TEST_F(CpuDeviceTest, RunsAnExecutable) {
  use_functions();
  Executable executable;
  executable.device = cpu_device();
  executable.num_inputs = executable.num_outputs = 1;
  executable.arena_bytes = 8 * 64;
  const auto programs = executable.device->compiler().compile(two_sources(64, 1e6));
  const Slot temporary{Slot::Kind::Temporary, 0, 0};
  executable.steps = {Launch{programs[0], {temporary, {Slot::Kind::Input, 0, 0}}},
                      Launch{programs[1], {{Slot::Kind::Output, 0, 0}, temporary}}};
  executable.prepare();
  std::vector<int64_t> in(64), out(64);
  std::iota(in.begin(), in.end(), 0);
  void* const inputs[] = {in.data()};
  void* const outputs[] = {out.data()};
  const int64_t vars[] = {1};
  executable.run(inputs, outputs, vars);
  for (int64_t i = 0; i < 64; ++i) EXPECT_EQ(out[i], -(10 * i + 1));
}

}  // namespace
}  // namespace rune::runtime
