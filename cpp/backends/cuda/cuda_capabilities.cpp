#include "backends/cuda/cuda_capabilities.h"

#include "render/cuda.h"

namespace rune::cuda {

namespace {

// The functions of the CUDA math library with errors of at most 2 ulp, from the programming guide's
// table.
constexpr AluOp kAccurate[] = {
    AluOp::Ldexp, AluOp::Cbrt,  AluOp::Exp,   AluOp::Exp2, AluOp::Expm1, AluOp::Log,
    AluOp::Log2,  AluOp::Log10, AluOp::Log1p, AluOp::Sin,  AluOp::Cos,   AluOp::Asin,
    AluOp::Acos,  AluOp::Atan,  AluOp::Cosh,  AluOp::Tanh, AluOp::Erf,
};
constexpr AluOp kAccurateInFloat64[] = {AluOp::Pow,   AluOp::Tan,   AluOp::Atan2, AluOp::Sinh,
                                        AluOp::Asinh, AluOp::Acosh, AluOp::Atanh};

}  // namespace

Capabilities capabilities() {
  Capabilities caps = render::capabilities_of(render::cuda_dialect());
  caps.num_cores = 80;
  caps.vector_bits = 128;
  caps.num_vector_registers = 128;
  caps.max_threads_per_group = 1024;
  caps.simd_width = 32;
  caps.points_per_thread = 4;
  caps.row_points_per_thread = 16;
  caps.l2_bytes = 4 << 20;
  caps.last_level_bytes = 4 << 20;
  caps.max_grid = (int64_t{1} << 31) - 1;
  caps.bandwidth_bytes_per_ns = 600;
  caps.last_level_bytes_per_ns = 2000;
  caps.operations_per_ns = rates_by_size(7500);
  caps.launch_ns = 4000;
  set_native(caps, kAccurate, DType::Float32);
  set_native(caps, kAccurate, DType::Float64);
  set_native(caps, kAccurateInFloat64, DType::Float64);
  return caps;
}

// Measured on an H200, per multiprocessor.
std::vector<LibraryRate> library_rates(int num_multiprocessors) {
  std::vector<LibraryRate> rates{{DType::Float16, 2850, 440},
                                 {DType::Bfloat16, 2850, 440},
                                 {DType::Float32, 190, 168},
                                 {DType::Float64, 230, 73}};
  for (LibraryRate& rate : rates)
    for (double* figure : {&rate.of_library, &rate.of_kernels}) *figure *= num_multiprocessors;
  return rates;
}

}  // namespace rune::cuda
