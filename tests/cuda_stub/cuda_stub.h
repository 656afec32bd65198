// The declarations built into NVRTC that rendered kernels use, for checking CUDA C++ text with
// clang:
//   -x cuda --cuda-device-only -nocudainc -nocudalib -fsyntax-only -include cuda_stub.h
#pragma once
#pragma clang system_header

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))

struct RuneDim {
  unsigned x, y, z;
};
extern __device__ const RuneDim threadIdx, blockIdx;
__device__ void __syncthreads();
extern "C" __device__ void* memcpy(void*, const void*, unsigned long);

#define RUNE_UNARY(name)                     \
  extern "C" __device__ double name(double); \
  extern "C" __device__ float name##f(float);
#define RUNE_BINARY(name)                            \
  extern "C" __device__ double name(double, double); \
  extern "C" __device__ float name##f(float, float);
// clang-format off
RUNE_UNARY(acos) RUNE_UNARY(acosh) RUNE_UNARY(asin) RUNE_UNARY(asinh) RUNE_UNARY(atan)
RUNE_UNARY(atanh) RUNE_UNARY(cbrt) RUNE_UNARY(ceil) RUNE_UNARY(cos) RUNE_UNARY(cosh)
RUNE_UNARY(erf) RUNE_UNARY(exp) RUNE_UNARY(exp2) RUNE_UNARY(expm1) RUNE_UNARY(fabs)
RUNE_UNARY(floor) RUNE_UNARY(log) RUNE_UNARY(log10) RUNE_UNARY(log1p) RUNE_UNARY(log2)
RUNE_UNARY(rint) RUNE_UNARY(sin) RUNE_UNARY(sinh) RUNE_UNARY(sqrt) RUNE_UNARY(tan)
RUNE_UNARY(tanh) RUNE_UNARY(trunc)
RUNE_BINARY(atan2) RUNE_BINARY(copysign) RUNE_BINARY(fmod) RUNE_BINARY(hypot) RUNE_BINARY(pow)
extern "C" __device__ double fma(double, double, double);
// clang-format on
extern "C" __device__ float fmaf(float, float, float);
extern "C" __device__ double ldexp(double, int);
extern "C" __device__ float ldexpf(float, int);
#define RUNE_TEST(name)         \
  __device__ bool name(double); \
  __device__ bool name(float);
RUNE_TEST(isnan) RUNE_TEST(isinf) RUNE_TEST(isfinite) RUNE_TEST(signbit)
