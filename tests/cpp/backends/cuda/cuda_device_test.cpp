// The host's side of the CUDA backend on a fake driver (tests/cuda_fake). Each test is a process of
// its own under ctest, so that a driver is loaded anew.
#include "backends/cuda/cuda_device.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <numeric>
#include <thread>

#include "backends/cuda/services.h"
#include "base/error.h"
#include "base/options.h"

namespace rune::cuda {
namespace {

void* library() {
  static void* const handle = dlopen(RUNE_CUDA_FAKE, RTLD_NOW);
  return handle;
}
void set(const char* name, long value) {
  const auto function =
      reinterpret_cast<int (*)(const char*, long)>(dlsym(library(), "rune_fake_set"));
  ASSERT_EQ(function(name, value), 1) << name;
}
long get(const char* name) {
  return reinterpret_cast<long (*)(const char*)>(dlsym(library(), "rune_fake_get"))(name);
}
std::string misuse() {
  return reinterpret_cast<const char* (*)()>(dlsym(library(), "rune_fake_misuse"))();
}

std::string error_of(const std::function<void()>& function) {
  try {
    function();
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

runtime::KernelSource source(const std::string& name, int buffers) {
  runtime::KernelSource result;
  result.name = name;
  result.location = "user.py:7";
  result.text = "extern \"C\" __global__ void __launch_bounds__(32)\n" + name + "(";
  for (int i = 0; i < buffers; ++i) {
    result.text += concat(i ? ", " : "", "float* b", i);
    result.buffer_dtypes.push_back(DType::Float32);
    result.buffer_sizes.push_back(8);
    result.buffer_written.push_back(true);
  }
  result.text += ") {}\n";
  result.local = 32;
  return result;
}

class CudaDeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    options().cuda_driver = options().nvrtc = RUNE_CUDA_FAKE;
    options().allocator_cache_mib = 64;
  }
  void TearDown() override { EXPECT_EQ(misuse(), ""); }
};

TEST_F(CudaDeviceTest, NothingIsLoadedBeforeADeviceIsOpened) {
  options().cuda_driver = "/nowhere/libcuda.so.1";
  const std::string error = error_of([] { make_device(0); });
  EXPECT_TRUE(contains(error, "cuda: cannot load NVIDIA's driver (/nowhere/libcuda.so.1: "))
      << error;
  EXPECT_TRUE(contains(error, "hint: install NVIDIA's driver")) << error;
  EXPECT_TRUE(contains(describe(), "cannot load NVIDIA's driver"));
  EXPECT_TRUE(contains(describe(), "\nNVRTC of CUDA 13.0"));
}

TEST_F(CudaDeviceTest, AMachineWithoutACard) {
  set("init_result", 100);
  const std::string error = error_of([] { make_device(0); });
  EXPECT_TRUE(contains(error, "CUDA_ERROR_NO_DEVICE")) << error;
  EXPECT_TRUE(contains(error, "CUDA_VISIBLE_DEVICES")) << error;
  set("init_result", 0);
  EXPECT_EQ(error_of([] { make_device(1); }), "");
  EXPECT_TRUE(contains(error_of([] { make_device(2); }), "cannot open cuda:2 (this machine has 2"));
}

TEST_F(CudaDeviceTest, AnOldDriver) {
  set("driver_version", 11080);
  const std::string error = error_of([] { make_device(0); });
  EXPECT_TRUE(contains(error, "it is for CUDA 11.8, 12.0 is needed")) << error;
}

TEST_F(CudaDeviceTest, NvrtcMustNotBeNewerThanTheDriver) {
  set("driver_version", 12040);
  const auto device = make_device(0);
  const auto kernel = source("k", 1);
  const std::string error = error_of([&] { device->compiler().compile({&kernel, 1}); });
  EXPECT_TRUE(contains(error, "NVRTC is of CUDA 13.0, the driver of CUDA 12.4")) << error;
  EXPECT_TRUE(contains(error, "pip install 'rune_jit[cuda12]'")) << error;
}

TEST_F(CudaDeviceTest, WithoutNvrtc) {
  options().nvrtc = "/nowhere/libnvrtc.so";
  const auto device = make_device(0);
  const auto kernel = source("k", 1);
  const std::string error = error_of([&] { device->compiler().compile({&kernel, 1}); });
  EXPECT_TRUE(contains(error, "cuda: cannot compile without NVRTC")) << error;
  EXPECT_TRUE(contains(error, "hint: pip install 'rune_jit[cuda]'")) << error;
}

TEST_F(CudaDeviceTest, AnOldCard) {
  set("architecture", 61);
  const auto device = make_device(0);
  const auto kernel = source("k", 1);
  const std::string error = error_of([&] { device->compiler().compile({&kernel, 1}); });
  EXPECT_TRUE(contains(error, "cannot compile for compute capability 6.1")) << error;
}

TEST_F(CudaDeviceTest, CapabilitiesAreTheDevices) {
  const auto device = make_device(0);
  EXPECT_EQ(device->capabilities().num_cores, 8);
  EXPECT_EQ(device->capabilities().last_level_bytes, 4 << 20);
  EXPECT_FALSE(device->addresses_host_memory());
}

// Small copies go directly, large ones in pieces, and one that is no multiple of a piece.
TEST_F(CudaDeviceTest, CopiesThereAndBack) {
  const auto device = make_device(0);
  for (const size_t count : {size_t{1}, size_t{1000}, size_t{4} << 20, (size_t{5} << 20) + 3}) {
    std::vector<uint32_t> in(count), out(count);
    std::iota(in.begin(), in.end(), 7);
    const size_t bytes = count * 4;
    const runtime::ScopedMemory a(device->allocator(), bytes), b(device->allocator(), bytes);
    device->copy_in(a.get(), in.data(), bytes);
    device->copy(b.get(), a.get(), bytes);
    device->copy_out(out.data(), b.get(), bytes);
    EXPECT_EQ(in, out) << count;
  }
  EXPECT_EQ(get("cuMemHostAlloc"), 2);  // the two stages
}

TEST_F(CudaDeviceTest, FreedMemoryIsUsedAgain) {
  const auto device = make_device(0);
  runtime::Allocator& allocator = device->allocator();
  void* const a = allocator.allocate(1000);
  allocator.deallocate(a, 1000);
  EXPECT_EQ(allocator.allocate(900), a);  // of the same class
  void* const b = allocator.allocate(900);
  EXPECT_NE(a, b);
  EXPECT_EQ(get("cuMemAllocFromPoolAsync"), 2);
  allocator.deallocate(b, 900);
  allocator.deallocate(a, 900);
  EXPECT_EQ(get("cuMemFreeAsync"), 0);
  EXPECT_THROW(allocator.deallocate(a, 900), InternalError);
  EXPECT_THROW(allocator.deallocate(&allocator, 900), InternalError);
}

TEST_F(CudaDeviceTest, WhatIsKeptHasALimit) {
  options().allocator_cache_mib = 1;
  const auto device = make_device(0);
  runtime::Allocator& allocator = device->allocator();
  constexpr size_t kBytes = 400 << 10;
  std::vector<void*> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(allocator.allocate(kBytes));
  for (void* block : blocks) allocator.deallocate(block, kBytes);
  EXPECT_EQ(get("cuMemFreeAsync"), 2);
}

// What is kept in other sizes goes back to the driver before there is an error.
TEST_F(CudaDeviceTest, Pressure) {
  set("memory_bytes", 4 << 20);
  for (const long pools : {1, 0}) {
    set("pools", pools);
    const auto device = make_device(pools ? 0 : 1);
    runtime::Allocator& allocator = device->allocator();
    for (const size_t bytes : {size_t{1} << 20, size_t{2} << 20})
      allocator.deallocate(allocator.allocate(bytes), bytes);
    void* const most = allocator.allocate(size_t{3} << 20);
    EXPECT_EQ(get("used_bytes"), 3 << 20);
    const std::string error = error_of([&] { allocator.allocate(size_t{2} << 20); });
    EXPECT_EQ(
        error,
        "cuda: cannot allocate 2097152 bytes (1048576 bytes of the device's 4194304 are free)");
    allocator.deallocate(most, size_t{3} << 20);
    allocator.deallocate(allocator.allocate(size_t{4} << 20), size_t{4} << 20);
    EXPECT_THROW(allocator.allocate(size_t{5} << 20), UserError);
    EXPECT_EQ(get("used_bytes"), 0);
  }
}

TEST_F(CudaDeviceTest, LaunchesCheckTheirArguments) {
  const auto device = make_device(0);
  const auto kernel = source("k", 2);
  const auto program = device->compiler().compile({&kernel, 1})[0];
  const runtime::ScopedMemory a(device->allocator(), 32), b(device->allocator(), 32);
  void* const buffers[] = {a.get(), b.get()};
  program->launch({buffers, {}});
  device->synchronize();
  EXPECT_EQ(get("cuLaunchKernel"), 1);
  EXPECT_THROW(program->launch({std::span(buffers).first(1), {}}), InternalError);
}

TEST_F(CudaDeviceTest, KernelsThatWaitBeginEarly) {
  const char* const early = "cuLaunchKernel that begins early";
  const auto device = make_device(0);
  const runtime::ScopedMemory a(device->allocator(), 32);
  void* const buffers[] = {a.get()};
  const auto launches = [&](const runtime::KernelSource& kernel) {
    const auto before = get(early);
    device->compiler().compile({&kernel, 1})[0]->launch({buffers, {}});
    return get(early) - before;
  };
  runtime::KernelSource kernel = source("k", 1);
  EXPECT_EQ(launches(kernel), 0);  // it does not wait
  kernel.text =
      "// griddepcontrol.wait\n__global__ void __launch_bounds__(32)\nk(float* b0) {\n"
      "  rune_begin(b0);\n}\n";
  EXPECT_EQ(launches(kernel), 1);
  kernel.needs_early_loads = true;
  EXPECT_EQ(launches(kernel), 0);
}

TEST_F(CudaDeviceTest, EventsTimeLaunches) {
  const auto device = make_device(0);
  const auto kernel = source("k", 1);
  const auto program = device->compiler().compile({&kernel, 1})[0];
  const runtime::ScopedMemory a(device->allocator(), 32);
  void* const buffers[] = {a.get()};
  EXPECT_EQ(device->time([&] { program->launch({buffers, {}}); }), 250000);
  EXPECT_EQ(get("cuLaunchKernel"), 1);
  EXPECT_THROW(device->time([] { user_error(ErrorKind::Value, "mine"); }), UserError);
}

TEST_F(CudaDeviceTest, ManyBuffers) {
  const auto device = make_device(0);
  const auto kernel = source("k", 90);
  const auto program = device->compiler().compile({&kernel, 1})[0];
  const runtime::ScopedMemory a(device->allocator(), 32);
  const std::vector<void*> buffers(90, a.get());
  const int64_t vars[] = {3};
  program->launch({buffers, vars});
  device->synchronize();
}

TEST_F(CudaDeviceTest, ATextIsCompiledOnceAndKeptOnDisk) {
  std::map<std::string, std::string> kept;
  services().read_cache = [&](const std::string& key) -> std::optional<std::string> {
    const auto found = kept.find(key);
    return found == kept.end() ? std::nullopt : std::optional(found->second);
  };
  services().write_cache = [&](const std::string& key, const std::string& code) {
    kept[key] = code;
  };
  const auto device = make_device(0);
  const auto kernel = source("k", 1);
  {
    const auto first = device->compiler().compile({&kernel, 1});
    const auto second = device->compiler().compile({&kernel, 1});
    EXPECT_EQ(get("nvrtcCompileProgram"), 1);
    EXPECT_EQ(get("cuModuleLoadData"), 1);
  }
  EXPECT_EQ(get("cuModuleUnload"), 1);
  const auto third = device->compiler().compile({&kernel, 1});
  EXPECT_EQ(get("nvrtcCompileProgram"), 1);  // from the disk
  EXPECT_EQ(kept.size(), 1U);
  const std::string key = kept.begin()->first;
  for (const char* part :
       {"13000", "--gpu-architecture=sm_90", "--fmad=false", "__launch_bounds__"})
    EXPECT_TRUE(contains(key, part)) << key;
  services() = {};
}

TEST_F(CudaDeviceTest, KernelsOfOneText) {
  const auto device = make_device(0);
  std::vector<runtime::KernelSource> sources = {source("a", 1), source("b", 2)};
  sources[0].text += sources[1].text;
  sources[1].text.clear();
  EXPECT_EQ(device->compiler().compile(sources).size(), 2U);
  EXPECT_EQ(get("nvrtcCompileProgram"), 1);
}

TEST_F(CudaDeviceTest, TheCompilersMessages) {
  const auto device = make_device(0);
  auto kernel = source("k", 1);
  kernel.text += "not CUDA";
  const std::string error = error_of([&] { device->compiler().compile({&kernel, 1}); });
  EXPECT_TRUE(contains(error, "cuda: cannot compile (NVRTC_ERROR_FAKE): a log\n")) << error;
}

TEST_F(CudaDeviceTest, AKernelThatNeedsManyRegisters) {
  set("max_threads", 16);
  const auto device = make_device(0);
  const auto kernel = source("k", 1);
  try {
    device->compiler().compile({&kernel, 1});
    FAIL();
  } catch (const runtime::ThreadLimitError& error) {
    EXPECT_EQ(error.allowed(), 16);
  }
}

// An illegal access is told where it is waited for, with the kernels' names and the user's lines;
// later calls tell of it, too, and none reaches the driver.
TEST_F(CudaDeviceTest, AnErrorThatDestroysTheContext) {
  const auto device = make_device(0);
  const std::vector<runtime::KernelSource> sources = {source("first", 1), source("second", 1)};
  const auto programs = device->compiler().compile(sources);
  void* const memory = device->allocator().allocate(32);
  void* const buffers[] = {memory};
  programs[0]->launch({buffers, {}});
  device->synchronize();
  set("fault_at_launch", get("cuLaunchKernel") + 1);
  programs[1]->launch({buffers, {}});
  std::vector<float> host(8);
  const std::string error = error_of([&] { device->copy_out(host.data(), memory, 32); });
  EXPECT_TRUE(contains(error, "CUDA_ERROR_ILLEGAL_ADDRESS")) << error;
  EXPECT_TRUE(contains(error, "kernel second (user.py:7)")) << error;
  EXPECT_FALSE(contains(error, "first")) << error;
  for (const std::function<void()>& later : std::vector<std::function<void()>>{
           [&] { device->allocator().allocate(8); }, [&] { programs[0]->launch({buffers, {}}); },
           [&] { device->synchronize(); }, [&] { device->copy_in(memory, host.data(), 32); },
           [&] { device->compiler().compile({sources.data(), 1}); }}) {
    const std::string text = error_of(later);
    EXPECT_TRUE(contains(text, "cuda: cannot use the device any more")) << text;
    EXPECT_TRUE(contains(text, "kernel second (user.py:7)")) << text;
  }
  device->allocator().deallocate(memory, 32);
  EXPECT_EQ(get("cuMemFreeAsync"), 0);
}

// Whether a child that runs this function ends well.
bool child_succeeds(const std::function<bool()>& function) {
  const pid_t child = fork();
  if (child == 0) _exit(function() ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST_F(CudaDeviceTest, AForkedChildIsToldAndFreesNothing) {
  const auto device = make_device(0);
  const auto kernel = source("k", 1);
  auto programs = device->compiler().compile({&kernel, 1});
  void* const memory = device->allocator().allocate(32);
  EXPECT_TRUE(child_succeeds([&] {
    const long before = get("cuMemFreeAsync") + get("cuModuleUnload");
    device->allocator().deallocate(memory, 32);
    programs.clear();
    if (get("cuMemFreeAsync") + get("cuModuleUnload") != before) return false;
    const std::string error = error_of([&] { device->allocator().allocate(32); });
    return contains(error, "cannot use the device in a forked process") && contains(error, "spawn");
  }));
  device->allocator().deallocate(memory, 32);
  device->synchronize();
}

TEST_F(CudaDeviceTest, AChildOfAProcessThatUsedNoDeviceMayUseIt) {
  EXPECT_TRUE(child_succeeds([] {
    const auto device = make_device(0);
    void* const memory = device->allocator().allocate(32);
    device->allocator().deallocate(memory, 32);
    return memory != nullptr;
  }));
}

TEST_F(CudaDeviceTest, TwoDevicesHaveContextsOfTheirOwn) {
  const auto first = make_device(0), second = make_device(1);
  const std::vector<float> host(8, 1.5F);
  std::vector<float> back(8);
  for (const auto& device : {first, second, first}) {
    const runtime::ScopedMemory memory(device->allocator(), 32);
    device->copy_in(memory.get(), host.data(), 32);
    device->copy_out(back.data(), memory.get(), 32);
    EXPECT_EQ(back, host);
  }
  EXPECT_EQ(get("cuStreamCreate"), 2);
}

TEST_F(CudaDeviceTest, Threads) {
  const auto device = make_device(0);
  const auto kernel = source("k", 1);
  const auto program = device->compiler().compile({&kernel, 1})[0];
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::vector<int> host(500, t), back(500);
      for (int i = 0; i < 200; ++i) {
        const runtime::ScopedMemory memory(device->allocator(), 2000);
        void* const buffers[] = {memory.get()};
        device->copy_in(memory.get(), host.data(), 2000);
        program->launch({buffers, {}});
        device->copy_out(back.data(), memory.get(), 2000);
        ASSERT_EQ(back, host);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(get("cuLaunchKernel"), 800);
}

}  // namespace
}  // namespace rune::cuda
