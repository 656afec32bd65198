#include "backends/cpu/cpu_capabilities.h"

#include <algorithm>
#include <deque>
#include <fstream>
#include <map>
#include <mutex>
#include <utility>

#include "alu/alu.h"
#include "backends/cpu/cpu_calibration.h"
#include "runtime/thread_pool.h"

#if defined(__APPLE__)
#include <sys/sysctl.h>
#endif

namespace rune::runtime {

namespace {

struct VectorUnit {
  int bits = 128;
  int registers = 16;
};

VectorUnit vector_unit() {
#if defined(__x86_64__)
  __builtin_cpu_init();  // also checks which registers the operating system saves
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return {512, 32};
  if (__builtin_cpu_supports("avx2")) return {256, 16};
  return {128, 16};
#elif defined(__aarch64__)
  return {128, 32};
#else
  return {};
#endif
}

#if defined(__APPLE__)
int64_t system_value(const char* name, int64_t fallback) {
  int64_t value = 0;
  size_t size = sizeof value;
  return sysctlbyname(name, &value, &size, nullptr, 0) == 0 && value > 0 ? value : fallback;
}
#endif

#if defined(__linux__)
// The sizes in bytes of the first core's data caches, by level. Caches that the system does not
// report are missing.
std::map<int, int64_t> linux_cache_bytes() {
  std::map<int, int64_t> bytes;
  for (int index = 0; index < 8; ++index) {
    const std::string folder =
        "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + '/';
    int level = 0;
    std::string type, size;
    if (!(std::ifstream(folder + "level") >> level)) break;
    std::ifstream(folder + "type") >> type;
    std::ifstream(folder + "size") >> size;
    if (type == "Instruction" || size.empty()) continue;
    const int64_t number = std::strtoll(size.c_str(), nullptr, 10);
    const int64_t unit = size.back() == 'K' ? 1 << 10 : size.back() == 'M' ? 1 << 20 : 1;
    if (number > 0) bytes.emplace(level, number * unit);
  }
  return bytes;
}
#endif

void read_caches(Capabilities& caps) {
#if defined(__linux__)
  const std::map<int, int64_t> bytes = linux_cache_bytes();
  const auto of_level = [&](int level, int64_t fallback) {
    const auto found = bytes.find(level);
    return found == bytes.end() ? fallback : found->second;
  };
  caps.l2_bytes = of_level(2, caps.l2_bytes);
  caps.last_level_bytes = of_level(3, std::max(caps.last_level_bytes, caps.l2_bytes));
#elif defined(__APPLE__)
  caps.l2_bytes =
      system_value("hw.perflevel0.l2cachesize", system_value("hw.l2cachesize", caps.l2_bytes));
  caps.last_level_bytes =
      system_value("hw.l3cachesize", std::max(caps.last_level_bytes, caps.l2_bytes));
#endif
}

// Operations on float64 that have no expansion into vector operations. The C library computes them,
// with one call for each lane.
constexpr AluOp kCalledInFloat64[] = {AluOp::Pow,   AluOp::Atan2, AluOp::Cbrt,  AluOp::Asin,
                                      AluOp::Acos,  AluOp::Atan,  AluOp::Sinh,  AluOp::Cosh,
                                      AluOp::Asinh, AluOp::Acosh, AluOp::Atanh, AluOp::Erf};

// The costs, in additions of vectors, of one lane's call of the C library and of its division of
// 64-bit integers.
constexpr int kCallCost = 64, kDivisionCost = 12;
// The costs of multiplying vectors of integers. Fewer or slower units multiply integers than add
// them.
constexpr int kMul32Cost = 2, kMul64Cost = 3;

void set_scalar_costs(Capabilities& caps) {
  for (const DType dtype : {DType::Float32, DType::Float64})
    for (const AluOp op : {AluOp::Idiv, AluOp::Mod, AluOp::Fmod})
      set_cost(caps, op, dtype, kCallCost * caps.lanes(dtype));
  for (const AluOp op : kCalledInFloat64)
    set_cost(caps, op, DType::Float64, kCallCost * caps.lanes(DType::Float64));
  for (const DType dtype : {DType::Int32, DType::Uint32})
    set_cost(caps, AluOp::Mul, dtype, kMul32Cost);
  for (const DType dtype : {DType::Int64, DType::Uint64}) {
    set_cost(caps, AluOp::Mul, dtype, kMul64Cost);
    for (const AluOp op : {AluOp::Div, AluOp::Idiv, AluOp::Mod, AluOp::Fmod})
      set_cost(caps, op, dtype, kDivisionCost * caps.lanes(dtype));
  }
}

// Marks the operations that the LLVM renderer emits itself. `decompose` rewrites the others.
void set_native_ops(Capabilities& caps) {
  set_elementary_native(caps);
  set_table_costs(caps);
  set_scalar_costs(caps);
  set_native(caps, kCalledInFloat64, DType::Float64);
  // AVX-512 has an instruction for ldexp. Without it LLVM calls the C library for each lane.
  if (caps.vector_bits >= 512)
    for (const DType dtype : {DType::Float32, DType::Float64})
      set_native(caps, AluOp::Ldexp, dtype);
}

Capabilities read_capabilities() {
  Capabilities caps;
  caps.name = "cpu";
  caps.languages = {"cpu"};
  caps.model = ExecutionModel::Cores;
  caps.num_cores = num_threads();
  const VectorUnit unit = vector_unit();
  caps.vector_bits = unit.bits;
  caps.num_vector_registers = unit.registers;
  read_caches(caps);
  // A core reads about 12 GB/s, and some six cores saturate memory. A core does two operations on
  // vectors per cycle, at 3 GHz, and divides a vector of float32 in 10 cycles.
  caps.core_bandwidth_bytes_per_ns = 12;
  caps.bandwidth_bytes_per_ns = 12.0 * std::min(caps.num_cores, 6);
  caps.last_level_bytes_per_ns = 25.0 * caps.num_cores;
  caps.l2_bytes_per_ns = 60.0 * caps.num_cores;
  caps.operations_per_ns = rates_by_size(caps.num_cores * 3.0 * 2 * (unit.bits / 32));
  caps.divisions_per_ns = rates_by_size(caps.num_cores * 3.0 / 10 * (unit.bits / 32));
#if defined(__x86_64__) || defined(__aarch64__)
  caps.has_nontemporal_stores = true;
  caps.has_prefetch = true;
#endif
  for (int d = 0; d < kNumDTypes; ++d) {
    const auto dtype = static_cast<DType>(d);
    caps.dtypes.set(d);
    caps.arithmetic.set(d, dtype != DType::Float16 && dtype != DType::Bfloat16);
  }
  set_native_ops(caps);
  return caps;
}

// The built-in capabilities, and those of each calibration. They are kept, because other threads
// may use them.
struct Known {
  std::mutex mutex;
  std::deque<Capabilities> all{read_capabilities()};
};
Known& known() {
  static Known instance;
  return instance;
}

}  // namespace

const Capabilities& built_in_cpu_capabilities() {
  return known().all.front();
}

const Capabilities& cpu_capabilities() {
  const std::lock_guard<std::mutex> lock(known().mutex);
  return known().all.back();
}

void calibrate_cpu(const CpuFigures& figures) {
  Capabilities caps = built_in_cpu_capabilities();
  set_figures(caps, figures);
  const std::lock_guard<std::mutex> lock(known().mutex);
  known().all.push_back(std::move(caps));
}

}  // namespace rune::runtime
