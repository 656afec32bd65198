// What a device can do, as data. Scheduling, lowering and rendering read only this record, so no
// stage above the backends names a device.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <string>
#include <vector>

#include "types/dtype.h"
#include "types/shape.h"

namespace rune {

// How work is divided: among cores with vector lanes and caches, or over a grid of workgroups.
enum class ExecutionModel { Cores, Grid };

// The matrix operation a[m,k] @ b[k,n] + c[m,n], which the threads of a SIMD-group compute
// together. a and b have the dtype `operands`, c and the result the dtype `result`. `spread` says
// which elements of each tile a thread holds, as in lower::Wmma.
struct MatrixOp {
  int64_t m = 0, n = 0, k = 0;
  DType operands = DType::Float32, result = DType::Float32;
  std::vector<Ints> spread;
  bool operator==(const MatrixOp&) const = default;
};

// Multiply-adds per nanosecond in products of large matrices: those of the device's library, and
// those of our kernels.
struct LibraryRate {
  DType operands = DType::Float32;
  double of_library = 0, of_kernels = 0;
  // The time that the library saves in a product of this many multiply-adds.
  double saved_ns(double operations) const {
    return operations / of_kernels - operations / of_library;
  }
  bool operator==(const LibraryRate&) const = default;
};

// The rate `of_float32` for dtypes of at most 32 bits, and half of it for wider dtypes. Narrow
// dtypes are no faster, because a kernel's widest dtype determines how many lanes its vectors have.
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
  int max_threads_per_group = 1;    // Grid
  int simd_width = 1;               // threads that run in lock step (Grid)
  int64_t shared_memory_bytes = 0;  // per group (Grid)
  // How many elements each thread computes so that its loads overlap: in elementwise kernels, and
  // in a row that a workgroup reduces (Grid).
  int points_per_thread = 1;
  int row_points_per_thread = 1;
  int access_bytes = 0;                 // widest load or store of a thread, if aligned (Grid)
  int64_t l2_bytes = 1 << 20;           // per core
  int64_t last_level_bytes = 8 << 20;   // shared by all cores
  int max_buffers = 1 << 16;            // arguments of one kernel
  int64_t max_grid = int64_t{1} << 31;  // groups, along the first dimension
  // A loop is expanded if its iterations have at most this many nodes in total. The host runs a
  // longer loop, because compiling it expanded would take too long (Grid).
  int max_expanded_nodes = 2000;

  // Figures of the cost model. Rates are those of all cores together.
  double bandwidth_bytes_per_ns = 10;       // main memory
  double core_bandwidth_bytes_per_ns = 10;  // main memory, one core alone (Cores)
  double last_level_bytes_per_ns = 0;       // data in the last-level cache; 0: as main memory
  double l2_bytes_per_ns = 0;               // data in second-level caches; 0: as the last level
  // Additions or multiply-adds of elements per nanosecond, by dtype.
  std::array<double, kNumDTypes> operations_per_ns = rates_by_size(25);
  std::array<double, kNumDTypes> divisions_per_ns = rates_by_size(1.25);  // of floats (Cores)
  double launch_ns = 500;     // running a kernel that does nothing
  double parallel_ns = 5000;  // handing work to other cores and waiting for them (Cores)
  // The time of an operation on one element if a thread runs alone, with its share of the loads,
  // which no other thread's work hides (Grid). Measured in a simulation of 100 bodies on an H200.
  double thread_operation_ns = 15;

  bool has_nontemporal_stores = false;
  bool has_prefetch = false;           // prefetch instructions make later loads faster
  std::vector<std::string> languages;  // of Custom operations' sources, the preferred one first
  std::vector<MatrixOp> matrix_ops;
  std::vector<LibraryRate> library_rates;  // empty without a library of products
  std::bitset<16> dtypes;                  // storable dtypes, by DType
  std::bitset<16> arithmetic;              // dtypes with native arithmetic; others are widened
  // Native scalar operations, by dtype and by the number of the operation in alu.def. The
  // `decompose` pass rewrites the others.
  std::array<std::bitset<128>, kNumDTypes> native_ops;

  // The cost of each operation in additions of the same dtype, indexed like native_ops.
  std::array<std::array<uint16_t, 128>, kNumDTypes> costs{};

  // Operations that combine the values of a SIMD-group's threads, indexed like native_ops.
  std::array<std::bitset<128>, kNumDTypes> simd_ops;
  // Dtypes of values that a SIMD-group's threads can read from one another.
  std::bitset<16> simd_shuffles;
  // Atomic operations on elements of global memory, indexed like native_ops.
  std::array<std::bitset<128>, kNumDTypes> atomic_ops;

  bool operator==(const Capabilities&) const = default;
  // For a complex dtype: whether the device has the dtype of its parts.
  bool has_dtype(DType d) const { return dtypes[static_cast<int>(real_of(d))]; }
  bool has_arithmetic(DType d) const { return arithmetic[static_cast<int>(d)]; }
  // The number of lanes of a full vector register, at least 1.
  int lanes(DType d) const {
    const int lanes = vector_bits / bits_of(d);
    return lanes < 1 ? 1 : lanes;
  }
};

}  // namespace rune
