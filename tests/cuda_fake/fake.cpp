#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "emulation.h"
#include "fake.h"
#include "gpu_emulator/runner.h"

namespace rune::cuda_fake {

std::map<std::string, long>& numbers() {
  static std::map<std::string, long> all = [] {
    std::map<std::string, long> defaults = {
        {"driver_version", 13000},
        {"init_result", 0},
        {"devices", 2},
        {"memory_bytes", 1 << 30},
        {"pools", 1},
        {"architecture", 90},
        {"max_threads", 1024},
        {"nvrtc_version", 13000},
        {"fault_at_launch", 0},  // the launch of this number, from 1, destroys the context
        {"busy", 0},             // whether no event has happened when it is asked for
        {"fail_load", 0},        // the result of loading code
        {"emulate", 0},          // whether launches compute
        {"error", 0},            // what has destroyed the context
    };
    for (auto& [name, value] : defaults) {
      std::string variable = "RUNE_FAKE_" + name;
      std::transform(variable.begin(), variable.end(), variable.begin(), ::toupper);
      if (const char* text = std::getenv(variable.c_str())) value = std::atol(text);
    }
    return defaults;
  }();
  return all;
}

State& state() {
  static auto* const instance = new State;
  return *instance;
}

thread_local std::vector<void*> current;

std::shared_ptr<gpu_emulator::Library> compile(const std::string& text) {
  return gpu_emulator::Library::compile(cuda_emulator::language(), text, RUNE_CUDA_KERNELS);
}

namespace {

bool is_in_live_memory(Address at, size_t bytes) {
  auto next = state().live.upper_bound(at);
  if (next == state().live.begin()) return false;
  --next;
  return at + bytes <= next->first + next->second;
}

int allocate(Address* memory, size_t bytes) {
  if (bytes == 0) return state().refuse(kInvalidValue, "an allocation of no bytes");
  if (state().used_bytes + static_cast<long>(bytes) > numbers()["memory_bytes"])
    return kOutOfMemory;
  void* const block = std::aligned_alloc(512, (bytes + 511) / 512 * 512);
  std::memset(block, 0xa5, bytes);
  *memory = reinterpret_cast<Address>(block);
  state().live[*memory] = bytes;
  state().freed.erase(*memory);
  state().used_bytes += static_cast<long>(bytes);
  return 0;
}

int release(Address memory) {
  const auto found = state().live.find(memory);
  if (found == state().live.end())
    return state().refuse(kInvalidValue, state().freed.count(memory) ? "memory is freed twice"
                                                                     : "a free of foreign memory");
  state().used_bytes -= static_cast<long>(found->second);
  state().live.erase(found);
  state().freed.insert(memory);
  std::free(reinterpret_cast<void*>(memory));
  return 0;
}

// The kernels of a text, with what is known of their parameters.
Module* load(const std::string& text) {
  auto* const module = new Module;
  if (numbers()["emulate"]) module->library = compile(text);
  const std::string mark = "__launch_bounds__(", vars_mark = "rune_vars<";
  for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + 1)) {
    const size_t begin = text.find_first_not_of(" \n", text.find(')', at) + 1);
    const size_t open = text.find('(', begin), close = text.find(')', open);
    const std::string parameters = text.substr(open, close - open);
    Function function;
    function.name = text.substr(begin, open - begin);
    function.num_pointers = static_cast<int>(std::count(parameters.begin(), parameters.end(), '*'));
    if (const size_t vars = parameters.find(vars_mark); vars != std::string::npos)
      function.vars_bytes = 8 * std::stoul(parameters.substr(vars + vars_mark.size()));
    const std::string waits = " {\n  rune_begin(";
    function.waits = text.compare(close + 1, waits.size(), waits) == 0;
    if (module->library) function.kernel = module->library->find(function.name);
    module->functions[function.name] = function;
  }
  return module;
}

// From an address to the end of the memory that it is in.
size_t bytes_behind(Address at) {
  if (!is_in_live_memory(at, 1)) return 0;
  const auto block = std::prev(state().live.upper_bound(at));
  return block->first + block->second - at;
}

int emulate(const Function& function, unsigned grid, unsigned block, void** parameters) {
  gpu_emulator::Launch launch;
  launch.grid[0] = grid;
  launch.local[0] = block;
  launch.max_threadgroup_bytes = 48 << 10;
  launch.keeps_denormals = true;
  for (int i = 0; i < function.num_pointers; ++i) {
    const Address at = *static_cast<Address*>(parameters[i]);
    static char nothing;  // stands for the address 0, of what has no elements
    launch.buffers.push_back({at ? reinterpret_cast<char*>(at) : &nothing, bytes_behind(at)});
  }
  if (function.vars_bytes)
    launch.buffers.push_back(
        {static_cast<char*>(parameters[function.num_pointers]), function.vars_bytes});
  state().emulator_error = gpu_emulator::run(*function.kernel, launch);
  return state().emulator_error.empty() ? 0
                                        : static_cast<int>(numbers()["error"] = kIllegalAddress);
}

int synchronize(const char* name) {
  return Call(name).result;
}

}  // namespace
}  // namespace rune::cuda_fake

using namespace rune::cuda_fake;

EXPORTED int rune_fake_set(const char* name, long value) {
  const std::lock_guard<std::recursive_mutex> lock(state().mutex);
  return numbers().count(name) ? (numbers()[name] = value, 1) : 0;
}
EXPORTED long rune_fake_get(const char* name) {
  const std::lock_guard<std::recursive_mutex> lock(state().mutex);
  if (std::string(name) == "used_bytes") return state().used_bytes;
  return numbers().count(name) ? numbers()[name] : state().counts[name];
}
EXPORTED const char* rune_fake_misuse() {
  return state().misuse.c_str();
}

// libcuda.

EXPORTED int cuInit(unsigned) {
  return static_cast<int>(numbers()["init_result"]);
}
EXPORTED int cuDriverGetVersion(int* version) {
  *version = static_cast<int>(numbers()["driver_version"]);
  return 0;
}
EXPORTED int cuGetErrorName(int error, const char** name) {
  *name = error == kIllegalAddress ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : error == 100           ? "CUDA_ERROR_NO_DEVICE"
                                   : "CUDA_ERROR_FAKE";
  return 0;
}
EXPORTED int cuGetErrorString(int error, const char** text) {
  *text = error == kIllegalAddress && !state().emulator_error.empty()
              ? state().emulator_error.c_str()
              : "as it was asked for";
  return 0;
}
EXPORTED int cuDeviceGetCount(int* count) {
  *count = static_cast<int>(numbers()["devices"]);
  return 0;
}
EXPORTED int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return ordinal < numbers()["devices"] ? 0 : 101;
}
EXPORTED int cuDeviceGetName(char* name, int bytes, int) {
  std::strncpy(name, "fake card", static_cast<size_t>(bytes));
  return 0;
}
EXPORTED int cuDeviceGetAttribute(int* value, int attribute, int) {
  const std::map<int, int> known = {{1, static_cast<int>(numbers()["max_threads"])},
                                    {5, 2147483647},
                                    {10, 32},
                                    {16, 8},
                                    {38, 4 << 20},
                                    {75, static_cast<int>(numbers()["architecture"]) / 10},
                                    {76, static_cast<int>(numbers()["architecture"]) % 10},
                                    {115, static_cast<int>(numbers()["pools"])}};
  const auto found = known.find(attribute);
  *value = found == known.end() ? 0 : found->second;
  return found == known.end() ? kInvalidValue : 0;
}
EXPORTED int cuDeviceTotalMem_v2(size_t* bytes, int) {
  *bytes = static_cast<size_t>(numbers()["memory_bytes"]);
  return 0;
}
EXPORTED int cuDevicePrimaryCtxRetain(void** context, int device) {
  const std::lock_guard<std::recursive_mutex> lock(state().mutex);
  ++state().counts["cuDevicePrimaryCtxRetain"];
  while (static_cast<int>(state().contexts.size()) <= device) state().contexts.push_back(new int);
  *context = state().contexts[static_cast<size_t>(device)];
  return 0;
}
EXPORTED int cuCtxGetCurrent(void** context) {
  *context = current.empty() ? nullptr : current.back();
  return 0;
}
EXPORTED int cuCtxSetCurrent(void* context) {
  if (!current.empty()) current.pop_back();
  current.push_back(context);
  return 0;
}
EXPORTED int cuCtxPushCurrent_v2(void* context) {
  current.push_back(context);
  return 0;
}
EXPORTED int cuCtxPopCurrent_v2(void** context) {
  *context = current.back();
  current.pop_back();
  return 0;
}
EXPORTED int cuCtxSynchronize() {
  return synchronize("cuCtxSynchronize");
}
EXPORTED int cuStreamCreate(void** stream, unsigned) {
  *stream = new int;
  return Call("cuStreamCreate").result;
}
EXPORTED int cuStreamSynchronize(void*) {
  return synchronize("cuStreamSynchronize");
}
EXPORTED int cuStreamWaitEvent(void*, void* event, unsigned) {
  return event ? Call("cuStreamWaitEvent").result : kInvalidHandle;
}
EXPORTED int cuEventCreate(void** event, unsigned) {
  *event = new int;
  return Call("cuEventCreate").result;
}
EXPORTED int cuEventRecord(void* event, void*) {
  return event ? Call("cuEventRecord").result : kInvalidHandle;
}
EXPORTED int cuEventSynchronize(void*) {
  return synchronize("cuEventSynchronize");
}
EXPORTED int cuEventElapsedTime(float* ms, void* first, void* second) {
  *ms = 0.25F;
  return first && second ? Call("cuEventElapsedTime").result : kInvalidHandle;
}
EXPORTED int cuEventQuery(void*) {
  const Call call("cuEventQuery");
  return call.result ? call.result : numbers()["busy"] ? 600 : 0;
}
EXPORTED int cuEventDestroy_v2(void* event) {
  delete static_cast<int*>(event);
  return 0;
}
EXPORTED int cuMemPoolCreate(void** pool, const void*) {
  *pool = new int;
  return Call("cuMemPoolCreate").result;
}
EXPORTED int cuMemPoolSetAttribute(void*, int, void*) {
  return Call("cuMemPoolSetAttribute").result;
}
EXPORTED int cuMemPoolSetAccess(void*, const void*, size_t) {
  return Call("cuMemPoolSetAccess").result;
}
EXPORTED int cuMemPoolTrimTo(void*, size_t) {
  return Call("cuMemPoolTrimTo").result;
}
EXPORTED int cuMemAllocFromPoolAsync(Address* memory, size_t bytes, void*, void*) {
  const Call call("cuMemAllocFromPoolAsync");
  return call.result ? call.result : allocate(memory, bytes);
}
EXPORTED int cuMemFreeAsync(Address memory, void*) {
  const Call call("cuMemFreeAsync");
  return call.result ? call.result : release(memory);
}
EXPORTED int cuMemAlloc_v2(Address* memory, size_t bytes) {
  const Call call("cuMemAlloc");
  return call.result ? call.result : allocate(memory, bytes);
}
EXPORTED int cuMemFree_v2(Address memory) {
  const Call call("cuMemFree");
  return call.result ? call.result : release(memory);
}
EXPORTED int cuMemGetInfo_v2(size_t* free, size_t* total) {
  *total = static_cast<size_t>(numbers()["memory_bytes"]);
  *free = *total - static_cast<size_t>(state().used_bytes);
  return 0;
}
EXPORTED int cuPointerGetAttributes(unsigned, int* attributes, void** values, Address memory) {
  const std::lock_guard<std::recursive_mutex> lock(state().mutex);
  if (*attributes != 2) return kInvalidValue;
  auto next = state().pinned.upper_bound(memory);
  const bool pinned = next != state().pinned.begin() && memory < (--next)->first + next->second;
  *static_cast<int*>(*values) = pinned ? 1 : is_in_live_memory(memory, 1) ? 2 : 0;
  return 0;
}
EXPORTED int cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  const Call call("cuMemHostAlloc");
  if (call.result) return call.result;
  *memory = std::malloc(bytes);
  state().pinned[reinterpret_cast<Address>(*memory)] = bytes;
  return 0;
}
EXPORTED int cuMemcpyHtoDAsync_v2(Address to, const void* from, size_t bytes, void*) {
  const Call call("cuMemcpyHtoDAsync");
  if (call.result) return call.result;
  if (!is_in_live_memory(to, bytes))
    return state().refuse(kInvalidValue, "a copy to memory that is not allocated");
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return 0;
}
EXPORTED int cuMemcpyDtoHAsync_v2(void* to, Address from, size_t bytes, void*) {
  const Call call("cuMemcpyDtoHAsync");
  if (call.result) return call.result;
  if (!is_in_live_memory(from, bytes))
    return state().refuse(kInvalidValue, "a copy of memory that is not allocated");
  std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  return 0;
}
EXPORTED int cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes, void*) {
  const Call call("cuMemcpyDtoDAsync");
  if (call.result) return call.result;
  if (!is_in_live_memory(from, bytes) || !is_in_live_memory(to, bytes))
    return state().refuse(kInvalidValue, "a copy within memory that is not allocated");
  std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  return 0;
}
EXPORTED int cuMemcpyPeerAsync(Address to, void* to_context, Address from, void* from_context,
                               size_t bytes, void* stream) {
  const Call call("cuMemcpyPeerAsync");
  if (to_context == from_context)
    return state().refuse(kInvalidContext, "a copy between devices within one");
  return cuMemcpyDtoDAsync_v2(to, from, bytes, stream);
}
EXPORTED int cuModuleLoadData(Module** module, const void* image) {
  const Call call("cuModuleLoadData");
  if (call.result) return call.result;
  if (const long failed = numbers()["fail_load"]) return static_cast<int>(failed);
  const std::string text(static_cast<const char*>(image));
  if (text.rfind("fake ", 0) != 0) return kInvalidImage;
  state().modules.insert(*module = load(text.substr(5)));
  return 0;
}
EXPORTED int cuModuleUnload(Module* module) {
  const Call call("cuModuleUnload");
  if (call.result) return call.result;
  if (!state().modules.erase(module))
    return state().refuse(kInvalidHandle, "a module is unloaded twice");
  for (auto& [name, function] : module->functions) state().functions.erase(&function);
  delete module;
  return 0;
}
EXPORTED int cuModuleGetFunction(Function** function, Module* module, const char* name) {
  const Call call("cuModuleGetFunction");
  if (call.result) return call.result;
  const auto found = module->functions.find(name);
  if (found == module->functions.end()) return kNotFound;
  state().functions.insert(*function = &found->second);
  return 0;
}
EXPORTED int cuFuncGetAttribute(int* value, int, Function*) {
  *value = static_cast<int>(numbers()["max_threads"]);
  return Call("cuFuncGetAttribute").result;
}
EXPORTED int cuLaunchKernel(Function* function, unsigned grid, unsigned, unsigned, unsigned block,
                            unsigned, unsigned, unsigned, void*, void** parameters, void**) {
  const Call call("cuLaunchKernel");
  if (call.result) return call.result;
  if (!state().functions.count(function))
    return state().refuse(kInvalidHandle, "a launch of an unloaded kernel");
  if (grid == 0 || block == 0 || block > 1024)
    return state().refuse(kInvalidValue, "a launch of a wrong size");
  // Where launches compute, accesses are checked.
  for (int i = 0; i < function->num_pointers && !function->kernel; ++i)
    if (!is_in_live_memory(*static_cast<Address*>(parameters[i]), 1))
      return state().refuse(kInvalidValue,
                            "a launch of " + function->name + " with memory that is not allocated");
  if (state().counts["cuLaunchKernel"] == numbers()["fault_at_launch"])
    numbers()["error"] = kIllegalAddress;
  return function->kernel ? emulate(*function, grid, block, parameters) : 0;
}
namespace {

struct LaunchAttribute {
  int id, padding, value;
  char rest[60];
};
struct LaunchConfiguration {
  unsigned grid[3], block[3], shared_bytes;
  void* stream;
  const LaunchAttribute* attributes;
  unsigned num_attributes;
};

}  // namespace

EXPORTED int cuLaunchKernelEx(const LaunchConfiguration* configuration, Function* function,
                              void** parameters, void** extra) {
  constexpr int kProgrammaticStreamSerialization = 6;
  for (unsigned i = 0; i < configuration->num_attributes; ++i) {
    const LaunchAttribute& attribute = configuration->attributes[i];
    if (attribute.id != kProgrammaticStreamSerialization)
      return state().refuse(kInvalidValue, "a launch with an unknown attribute");
    if (attribute.value && !function->waits)
      return state().refuse(kInvalidValue, "a kernel that does not wait begins early");
    state().counts["cuLaunchKernel that begins early"] += attribute.value != 0;
  }
  return cuLaunchKernel(function, configuration->grid[0], 1, 1, configuration->block[0], 1, 1,
                        configuration->shared_bytes, configuration->stream, parameters, extra);
}
