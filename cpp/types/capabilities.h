// What a device can do, as data. Scheduling, lowering and rendering ask this record and nothing
// else, so that no stage above the backends names a device.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <string>
#include <vector>

#include "types/dtype.h"
#include "types/shape.h"

namespace rune {

// How work is spread: over cores with vector lanes and caches, or over a grid of thread groups.
enum class ExecutionModel { Cores, Grid };

// A product of matrix tiles, a[m,k] @ b[k,n] + c[m,n], by the threads of one SIMD-group together. a
// and b are of `operands`, c and the result of `result`. spread: which elements of each tile a
// thread holds, as in lower::Wmma.
struct MatrixOp {
  int64_t m = 0, n = 0, k = 0;
  DType operands = DType::Float32, result = DType::Float32;
  std::vector<Ints> spread;
  bool operator==(const MatrixOp&) const = default;
};

// Operations on float32 and what is not wider, and half as many on wider dtypes: vectors have as
// many lanes as the widest dtype of a kernel allows.
inline std::array<double, kNumDTypes> rates_by_size(double of_float32) {
  std::array<double, kNumDTypes> rates{};
  for (int d = 0; d < kNumDTypes; ++d)
    rates[d] = size_of(static_cast<DType>(d)) > 4 ? of_float32 / 2 : of_float32;
  return rates;
}

struct Capabilities {
  std::string name;  // for messages and cache keys
  ExecutionModel model = ExecutionModel::Cores;
  int num_cores = 1;      // cores, or compute units
  int vector_bits = 128;  // SIMD register width per lane group (Cores)
  int num_vector_registers = 16;
  int max_threads_per_group = 1;        // Grid
  int simd_width = 1;                   // threads that run in lock step (Grid)
  int64_t shared_memory_bytes = 0;      // per group (Grid)
  int64_t l1_bytes = 32 << 10;          // per core
  int64_t l2_bytes = 1 << 20;           // per core
  int64_t last_level_bytes = 8 << 20;   // shared by all cores
  int max_buffers = 1 << 16;            // arguments of one kernel
  int64_t max_grid = int64_t{1} << 31;  // groups, along the first dimension

  // What takes how long. Rates are those of all cores together.
  double bandwidth_bytes_per_ns = 10;       // main memory
  double core_bandwidth_bytes_per_ns = 10;  // main memory, to one core alone (Cores)
  double last_level_bytes_per_ns = 0;       // what fits there; 0: as main memory
  double l2_bytes_per_ns = 0;               // what fits there; 0: as the last level
  // Additions, or multiply-adds, on elements of each dtype.
  std::array<double, kNumDTypes> operations_per_ns = rates_by_size(25);
  double launch_ns = 500;     // a kernel that does nothing
  double parallel_ns = 5000;  // handing work to other cores and waiting for them (Cores)

  bool has_nontemporal_stores = false;
  bool has_prefetch = false;  // loads that are announced some time before are served sooner
  std::vector<std::string> languages;  // of Custom operations' sources, the preferred one first
  std::vector<MatrixOp> matrix_ops;
  std::bitset<16> dtypes;      // storable dtypes, by DType
  std::bitset<16> arithmetic;  // dtypes with native arithmetic; others are widened
  // Native scalar operations by dtype, by the number of the operation in alu.def. What is missing
  // is rewritten by the `decompose` pass.
  std::array<std::bitset<128>, kNumDTypes> native_ops;

  // How many additions the operations take as long as, in the same way.
  std::array<std::array<uint16_t, 128>, kNumDTypes> costs{};

  // Operations by which the threads of a SIMD-group combine their values, in the same way.
  std::array<std::bitset<128>, kNumDTypes> simd_ops;
  // Operations that combine a value with an element of global memory in one step, in the same way.
  std::array<std::bitset<128>, kNumDTypes> atomic_ops;

  bool operator==(const Capabilities&) const = default;
  bool has_dtype(DType d) const { return dtypes[static_cast<int>(d)]; }
  bool has_arithmetic(DType d) const { return arithmetic[static_cast<int>(d)]; }
  // Lanes of a full vector register, at least 1.
  int lanes(DType d) const {
    const int lanes = vector_bits / bits_of(d);
    return lanes < 1 ? 1 : lanes;
  }
};

}  // namespace rune
