// A driver, an NVRTC and a cuBLAS for tests on machines without a card: the memory of the device is
// the host's, code is its text, a launch computes nothing, and products are computed as cuBLAS's
// manual says. It finds misuse, counts, and fails on demand. One library stands for all three
// (RUNE_JIT_CUDA_DRIVER, RUNE_JIT_NVRTC and RUNE_JIT_CUBLAS name it).
//
// rune_fake_set(name, value) sets a number below; RUNE_FAKE_<NAME> in the environment sets what it
// begins as. rune_fake_get(name) reads it, or a count. rune_fake_misuse() is the first misuse
// found.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

using Address = unsigned long long;

constexpr int kInvalidValue = 1, kOutOfMemory = 2, kInvalidContext = 201, kInvalidImage = 200,
              kInvalidHandle = 400, kNotFound = 500, kIllegalAddress = 700;

struct Function {
  std::string name;
  int num_pointers = 0;
};
struct Module {
  std::string text;
  std::map<std::string, Function> functions;
};

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

struct State {
  std::recursive_mutex mutex;
  std::map<Address, size_t> live;
  std::map<Address, size_t> pinned;
  std::set<Address> freed;
  std::set<Module*> modules;
  std::set<Function*> functions;
  std::map<std::string, long> counts;
  long used_bytes = 0;
  int error = 0;  // that destroyed the context
  std::string misuse;
  std::vector<void*> contexts;

  int refuse(int result, const std::string& what) {
    if (misuse.empty()) misuse = what;
    return result;
  }
};

State& state() {
  static auto* const instance = new State;
  return *instance;
}

thread_local std::vector<void*> current;  // contexts

// What every call that needs the context begins with.
struct Call {
  explicit Call(const char* name) : lock(state().mutex) {
    ++state().counts[name];
    result = state().error;
    if (current.empty())
      result = state().refuse(kInvalidContext, std::string(name) + " without a context");
  }
  std::lock_guard<std::recursive_mutex> lock;
  int result = 0;
};

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

// The kernels of a text, with the number of pointers among their parameters.
Module* load(const std::string& text) {
  auto* const module = new Module{text, {}};
  const std::string mark = "__launch_bounds__(";
  for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + 1)) {
    const size_t begin = text.find_first_not_of(" \n", text.find(')', at) + 1);
    const size_t open = text.find('(', begin), close = text.find(')', open);
    Function function{text.substr(begin, open - begin), 0};
    function.num_pointers = static_cast<int>(std::count(
        text.begin() + static_cast<long>(open), text.begin() + static_cast<long>(close), '*'));
    module->functions[function.name] = function;
  }
  return module;
}

int synchronize(const char* name) {
  return Call(name).result;
}

}  // namespace

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
EXPORTED int cuGetErrorString(int, const char** text) {
  *text = "as it was asked for";
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
  state().modules.insert(*module = load(text));
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
  for (int i = 0; i < function->num_pointers; ++i)
    if (!is_in_live_memory(*static_cast<Address*>(parameters[i]), 1))
      return state().refuse(kInvalidValue,
                            "a launch of " + function->name + " with memory that is not allocated");
  if (state().counts["cuLaunchKernel"] == numbers()["fault_at_launch"])
    state().error = kIllegalAddress;
  return 0;
}

// Graphs: lists of kernels.

namespace {

struct KernelParameters {
  Function* function;
  unsigned grid[3], block[3], shared_bytes;
  void** parameters;
  void** extra;
  void* kernel;
  void* context;
};
struct GraphNode {
  Function* function;
  unsigned grid, block;
  std::vector<Address> pointers;
};
using Graph = std::vector<GraphNode*>;

void fill(GraphNode& node, const KernelParameters& from) {
  node.function = from.function;
  node.grid = from.grid[0];
  node.block = from.block[0];
  node.pointers.clear();
  for (int i = 0; i < from.function->num_pointers; ++i)
    node.pointers.push_back(*static_cast<Address*>(from.parameters[i]));
}

}  // namespace

EXPORTED int cuGraphCreate(Graph** graph, unsigned) {
  *graph = new Graph;
  return Call("cuGraphCreate").result;
}
EXPORTED int cuGraphDestroy(Graph*) {
  return Call("cuGraphDestroy").result;
}
EXPORTED int cuGraphAddKernelNode_v2(GraphNode** node, Graph* graph, GraphNode* const* after,
                                     size_t num_after, const KernelParameters* parameters) {
  const Call call("cuGraphAddKernelNode");
  if (num_after != (graph->empty() ? 0u : 1u) || (num_after && *after != graph->back()))
    return state().refuse(kInvalidValue, "a kernel of a graph that does not follow the last one");
  fill(*(*node = new GraphNode), *parameters);
  graph->push_back(*node);
  return call.result;
}
EXPORTED int cuGraphInstantiateWithFlags(Graph** program, Graph* graph, unsigned long long) {
  *program = graph;
  return Call("cuGraphInstantiate").result;
}
EXPORTED int cuGraphExecKernelNodeSetParams_v2(Graph*, GraphNode* node,
                                               const KernelParameters* parameters) {
  const Call call("cuGraphExecKernelNodeSetParams");
  if (node->function != parameters->function)
    return state().refuse(kInvalidValue, "a kernel of a graph changes its function");
  fill(*node, *parameters);
  return call.result;
}
EXPORTED int cuGraphLaunch(Graph* program, void* stream) {
  const Call call("cuGraphLaunch");
  for (GraphNode* node : *program) {
    std::vector<void*> parameters;
    for (Address& pointer : node->pointers) parameters.push_back(&pointer);
    if (const int failed = cuLaunchKernel(node->function, node->grid, 1, 1, node->block, 1, 1, 0,
                                          stream, parameters.data(), nullptr))
      return failed;
  }
  return call.result;
}
EXPORTED int cuGraphExecDestroy(Graph*) {
  return Call("cuGraphExecDestroy").result;
}

// NVRTC.

EXPORTED int nvrtcVersion(int* major, int* minor) {
  *major = static_cast<int>(numbers()["nvrtc_version"] / 1000);
  *minor = static_cast<int>(numbers()["nvrtc_version"] % 1000 / 10);
  return 0;
}
EXPORTED const char* nvrtcGetErrorString(int) {
  return "NVRTC_ERROR_FAKE";
}
EXPORTED int nvrtcGetNumSupportedArchs(int* count) {
  *count = 3;
  return 0;
}
EXPORTED int nvrtcGetSupportedArchs(int* values) {
  const int known[] = {75, 90, 100};
  std::copy(std::begin(known), std::end(known), values);
  return 0;
}
EXPORTED int nvrtcCreateProgram(std::string** program, const char* text, const char*, int,
                                const char* const*, const char* const*) {
  *program = new std::string(std::string("fake ") + text);
  return 0;
}
EXPORTED int nvrtcDestroyProgram(std::string** program) {
  delete *program;
  return 0;
}
EXPORTED int nvrtcCompileProgram(std::string* program, int, const char* const*) {
  const std::lock_guard<std::recursive_mutex> lock(state().mutex);
  ++state().counts["nvrtcCompileProgram"];
  return program->find("not CUDA") != std::string::npos ? 6 : 0;
}
EXPORTED int nvrtcGetProgramLogSize(std::string*, size_t* bytes) {
  *bytes = 6;
  return 0;
}
EXPORTED int nvrtcGetProgramLog(std::string*, char* log) {
  std::memcpy(log, "a log", 6);
  return 0;
}
EXPORTED int nvrtcGetCUBINSize(std::string* program, size_t* bytes) {
  *bytes = program->size() + 1;
  return 0;
}
EXPORTED int nvrtcGetCUBIN(std::string* program, char* bytes) {
  std::memcpy(bytes, program->c_str(), program->size() + 1);
  return 0;
}
EXPORTED int nvrtcGetPTXSize(std::string* program, size_t* bytes) {
  return nvrtcGetCUBINSize(program, bytes);
}
EXPORTED int nvrtcGetPTX(std::string* program, char* bytes) {
  return nvrtcGetCUBIN(program, bytes);
}

// cuBLAS.

namespace {

constexpr int kFloat32 = 0, kFloat64 = 1, kFloat16 = 2, kBfloat16 = 14;

size_t size_of(int type) {
  return type == kFloat64 ? 8 : type == kFloat32 ? 4 : 2;
}

template <class T>
T read(const void* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// Of float16, normal numbers and 0 only.
double load(const void* at, int type) {
  if (type == kFloat32) return read<float>(at);
  if (type == kFloat64) return read<double>(at);
  const auto bits = read<uint16_t>(at);
  if (type == kFloat16) {
    const double size =
        bits & 0x7fff ? std::ldexp(1024 + (bits & 0x3ff), (bits >> 10 & 0x1f) - 25) : 0;
    return bits & 0x8000 ? -size : size;
  }
  const uint32_t wide = uint32_t{bits} << 16;
  return read<float>(&wide);
}

// Stores NaN if a number is none of the narrow type.
void store(void* at, int type, double value) {
  if (type == kFloat32) {
    const auto narrow = static_cast<float>(value);
    std::memcpy(at, &narrow, sizeof narrow);
  } else if (type == kFloat64) {
    std::memcpy(at, &value, sizeof value);
  } else {
    // A number of the type has 11 or 8 bits.
    int exponent = 0;
    const double part = std::frexp(std::abs(value), &exponent);
    const int digits = type == kFloat16 ? 11 : 8, bias = type == kFloat16 ? 14 : 126;
    const double scaled = std::ldexp(part, digits);
    const auto whole = static_cast<uint32_t>(scaled);
    uint32_t bits = value == 0 ? 0
                               : (static_cast<uint32_t>(exponent + bias) << (digits - 1)) + whole -
                                     (1u << (digits - 1));
    if (value < 0) bits |= 0x8000;
    if (whole != scaled || (value != 0 && exponent + bias < 1)) bits = 0x7fff;
    const auto narrow = static_cast<uint16_t>(bits);
    std::memcpy(at, &narrow, sizeof narrow);
  }
}

struct Operand {
  const void* memory;
  int type, step;
  bool is_transposed;
  double at(int row, int column) const {
    const int64_t i = is_transposed ? column + int64_t{row} * step : row + int64_t{column} * step;
    return load(static_cast<const char*>(memory) + i * static_cast<int64_t>(size_of(type)), type);
  }
};

int multiply(const Operand& a, const Operand& b, int m, int n, int k, void* c, int type_c,
             int step_c, int compute) {
  if (a.step < (a.is_transposed ? k : m) || b.step < (b.is_transposed ? n : k) || step_c < m)
    return state().refuse(7, "a matrix's columns overlap");
  if (a.type != b.type || (compute == 70) != (a.type == kFloat64) ||
      (type_c != a.type && type_c != kFloat32))
    return state().refuse(7, "the types of a product do not match");
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      double sum = 0;
      for (int l = 0; l < k; ++l) sum += a.at(i, l) * b.at(l, j);
      char* const at =
          static_cast<char*>(c) + (i + int64_t{j} * step_c) * static_cast<int64_t>(size_of(type_c));
      store(at, type_c, sum);
    }
  return 0;
}

}  // namespace

EXPORTED int cublasCreate_v2(int** handle) {
  const Call call("cublasCreate");
  static int only = 0;
  *handle = &only;
  return call.result ? 1 : 0;
}
EXPORTED int cublasSetStream_v2(int*, void*) {
  return 0;
}
EXPORTED int cublasSetMathMode(int*, int) {
  return 0;
}
EXPORTED const char* cublasGetStatusString(int) {
  return "CUBLAS_STATUS_FAKE";
}
EXPORTED int cublasGemmStridedBatchedEx(int*, int form_a, int form_b, int m, int n, int k,
                                        const void*, const void* a, int type_a, int step_a,
                                        long long next_a, const void* b, int type_b, int step_b,
                                        long long next_b, const void*, void* c, int type_c,
                                        int step_c, long long next_c, int batch, int compute, int) {
  const Call call("cublasGemm");
  const auto move = [](const void* memory, long long elements, int type) {
    return static_cast<const char*>(memory) + elements * static_cast<long long>(size_of(type));
  };
  for (int g = 0; g < batch; ++g)
    if (const int failed =
            multiply({move(a, g * next_a, type_a), type_a, step_a, form_a == 1},
                     {move(b, g * next_b, type_b), type_b, step_b, form_b == 1}, m, n, k,
                     const_cast<char*>(move(c, g * next_c, type_c)), type_c, step_c, compute))
      return failed;
  return call.result;
}
EXPORTED int cublasGemmEx(int* handle, int form_a, int form_b, int m, int n, int k,
                          const void* alpha, const void* a, int type_a, int step_a, const void* b,
                          int type_b, int step_b, const void* beta, void* c, int type_c, int step_c,
                          int compute, int algorithm) {
  return cublasGemmStridedBatchedEx(handle, form_a, form_b, m, n, k, alpha, a, type_a, step_a, 0, b,
                                    type_b, step_b, 0, beta, c, type_c, step_c, 0, 1, compute,
                                    algorithm);
}
