// What NVRTC declares by itself and rendered kernels use, so that clang compiles CUDA text as C++17
// and a CPU executes it (tests/gpu_emulator). What is not here is an error.
#pragma once
#pragma clang system_header

#include "gpu_kernel.h"

#define __global__
#define __device__
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(...)
// The translation gives each kernel the parameter `rune_ids`.
#define threadIdx rune_ids.thread_position_in_threadgroup
#define blockIdx rune_ids.threadgroup_position_in_grid
#define memcpy __builtin_memcpy

RUNE_UNCHECKED inline void __syncthreads(int line = __builtin_LINE()) {
  ::rune_gpu::rune_gpu_host->barrier(3, line);
}

// The handle of a condition is its address (graphs.cpp).
extern "C" RUNE_UNCHECKED inline void cudaGraphSetConditional(unsigned long long condition,
                                                              unsigned value) {
  *reinterpret_cast<unsigned*>(condition) = value;
}

// Each function is computed in double precision and rounded once.
#define RUNE_UNARY(name)                       \
  inline double name(double x) {               \
    return __builtin_##name(x);                \
  }                                            \
  inline float name##f(float x) {              \
    return (float)__builtin_##name((double)x); \
  }
#define RUNE_BINARY(name)                                 \
  inline double name(double x, double y) {                \
    return __builtin_##name(x, y);                        \
  }                                                       \
  inline float name##f(float x, float y) {                \
    return (float)__builtin_##name((double)x, (double)y); \
  }
// clang-format off
RUNE_UNARY(acos) RUNE_UNARY(acosh) RUNE_UNARY(asin) RUNE_UNARY(asinh) RUNE_UNARY(atan)
RUNE_UNARY(atanh) RUNE_UNARY(cbrt) RUNE_UNARY(ceil) RUNE_UNARY(cos) RUNE_UNARY(cosh)
RUNE_UNARY(erf) RUNE_UNARY(exp) RUNE_UNARY(exp2) RUNE_UNARY(expm1) RUNE_UNARY(fabs)
RUNE_UNARY(floor) RUNE_UNARY(log) RUNE_UNARY(log10) RUNE_UNARY(log1p) RUNE_UNARY(log2)
RUNE_UNARY(rint) RUNE_UNARY(sin) RUNE_UNARY(sinh) RUNE_UNARY(sqrt) RUNE_UNARY(tan)
RUNE_UNARY(tanh) RUNE_UNARY(trunc)
RUNE_BINARY(atan2) RUNE_BINARY(copysign) RUNE_BINARY(fmod) RUNE_BINARY(hypot) RUNE_BINARY(pow)
// clang-format on
#undef RUNE_UNARY
#undef RUNE_BINARY
                        inline double fma(double x, double y, double z) {
  return __builtin_fma(x, y, z);
}
inline float fmaf(float x, float y, float z) {
  return __builtin_fmaf(x, y, z);
}
inline double ldexp(double x, int exponent) {
  return __builtin_ldexp(x, exponent);
}
inline float ldexpf(float x, int exponent) {
  return __builtin_ldexpf(x, exponent);
}
#define RUNE_TEST(name)         \
  inline bool name(double x) {  \
    return __builtin_##name(x); \
  }                             \
  inline bool name(float x) {   \
    return __builtin_##name(x); \
  }
// clang-format off: it takes these for declarations.
RUNE_TEST(isnan)
RUNE_TEST(isinf)
RUNE_TEST(isfinite)
RUNE_TEST(signbit)
// clang-format on
#undef RUNE_TEST

// Operations of a warp: every lane takes part.
namespace rune_gpu {
template <class T>
struct Lanes {
  RUNE_UNCHECKED Lanes(T value, int line) : own(value) {
    all = rune_gpu_host->exchange(&value, sizeof(T), line, &count, &lane);
  }
  // A lane that does not exist gives the lane's own value here, and nothing defined on a card.
  RUNE_UNCHECKED T at(unsigned i) const { return i < count ? *(const T*)(all + 16 * i) : own; }
  T own;
  unsigned count = 0, lane = 0;
  const char* all;
};
}  // namespace rune_gpu
#define RUNE_SHUFFLES(T)                                                                          \
  RUNE_UNCHECKED inline T __shfl_sync(unsigned, T x, int from, int line = __builtin_LINE()) {     \
    const rune_gpu::Lanes<T> lanes(x, line);                                                      \
    return lanes.at((unsigned)from % 32);                                                         \
  }                                                                                               \
  RUNE_UNCHECKED inline T __shfl_xor_sync(unsigned, T x, int mask, int line = __builtin_LINE()) { \
    const rune_gpu::Lanes<T> lanes(x, line);                                                      \
    return lanes.at(lanes.lane ^ (unsigned)mask);                                                 \
  }
RUNE_SHUFFLES(int)
RUNE_SHUFFLES(unsigned)
RUNE_SHUFFLES(long long)
RUNE_SHUFFLES(unsigned long long)
RUNE_SHUFFLES(float)
RUNE_SHUFFLES(double)
#undef RUNE_SHUFFLES
RUNE_UNCHECKED inline int __any_sync(unsigned, int x, int line = __builtin_LINE()) {
  const rune_gpu::Lanes<int> lanes(x, line);
  int any = 0;
  for (unsigned i = 0; i < lanes.count; ++i) any |= lanes.at(i) != 0;
  return any;
}
RUNE_UNCHECKED inline int __all_sync(unsigned, int x, int line = __builtin_LINE()) {
  const rune_gpu::Lanes<int> lanes(x, line);
  int all = 1;
  for (unsigned i = 0; i < lanes.count; ++i) all &= lanes.at(i) != 0;
  return all;
}

// Threads are fibers of one thread, so that nothing comes between.
#define RUNE_ATOMIC(T, name, combine)                        \
  RUNE_UNCHECKED inline T name(T* object, T b) {             \
    ::rune_gpu::rune_gpu_host->access(object, sizeof(T), 2); \
    const T a = *object;                                     \
    *object = combine;                                       \
    return a;                                                \
  }
#define RUNE_ATOMIC_ORDER(T)               \
  RUNE_ATOMIC(T, atomicMax, a > b ? a : b) \
  RUNE_ATOMIC(T, atomicMin, a < b ? a : b)
RUNE_ATOMIC(int, atomicAdd, (int)((unsigned)a + (unsigned)b))
RUNE_ATOMIC(unsigned, atomicAdd, a + b)
RUNE_ATOMIC(unsigned long long, atomicAdd, a + b)
RUNE_ATOMIC(float, atomicAdd, a + b)
RUNE_ATOMIC(double, atomicAdd, a + b)
RUNE_ATOMIC_ORDER(int)
RUNE_ATOMIC_ORDER(unsigned)
RUNE_ATOMIC_ORDER(long long)
RUNE_ATOMIC_ORDER(unsigned long long)
#undef RUNE_ATOMIC_ORDER
#undef RUNE_ATOMIC

// Instructions of inline assembly, whose operands come in the order of the statement.
namespace rune_ptx {

RUNE_UNCHECKED inline float to_float(unsigned short half) {
  return (float)__builtin_bit_cast(_Float16, half);
}
RUNE_UNCHECKED inline float bfloat_to_float(unsigned short bits) {
  return __builtin_bit_cast(float, (unsigned)bits << 16);
}
RUNE_UNCHECKED inline void cvt_f32_f16(float& y, unsigned short x) {
  y = to_float(x);
}
RUNE_UNCHECKED inline void cvt_rn_f16_f32(unsigned short& y, float x) {
  y = __builtin_bit_cast(unsigned short, (_Float16)x);
}
RUNE_UNCHECKED inline void cvt_rn_f16_f64(unsigned short& y, double x) {
  y = __builtin_bit_cast(unsigned short, (_Float16)x);
}

// A tile of m16n8k16 over a warp, in the order of NVIDIA's manual: a register has a pair of
// neighbours of a row of a and c, or of a column of b.
template <float (*to_float)(unsigned short)>
RUNE_UNCHECKED inline void mma_m16n8k16(float* c, const unsigned (&a)[4], const unsigned (&b)[2],
                                        int line) {
  unsigned count = 0, lane = 0;
  float rows[16][16], columns[16][8];
  const auto half = [](unsigned pair, unsigned i)
                        RUNE_UNCHECKED { return to_float((unsigned short)(pair >> 16 * i)); };
  const char* all = rune_gpu::rune_gpu_host->exchange(a, sizeof a, line, &count, &lane);
  for (unsigned i = 0; i < 32; ++i)
    for (unsigned e = 0; e < 8; ++e)
      rows[i / 4 + 8 * (e / 2 % 2)][i % 4 * 2 + e % 2 + 8 * (e / 4)] =
          half(((const unsigned*)(all + 16 * i))[e / 2], e % 2);
  all = rune_gpu::rune_gpu_host->exchange(b, sizeof b, line, &count, &lane);
  for (unsigned i = 0; i < 32; ++i)
    for (unsigned e = 0; e < 4; ++e)
      columns[i % 4 * 2 + e % 2 + 8 * (e / 2)][i / 4] =
          half(((const unsigned*)(all + 16 * i))[e / 2], e % 2);
  for (unsigned e = 0; e < 4; ++e) {
    const unsigned row = lane / 4 + 8 * (e / 2), column = lane % 4 * 2 + e % 2;
    for (unsigned k = 0; k < 16; ++k) c[e] = __builtin_fmaf(rows[row][k], columns[k][column], c[e]);
  }
}
#define RUNE_MMA(type, to_float)                                                          \
  RUNE_UNCHECKED inline void mma_sync_aligned_m16n8k16_row_col_f32_##type##_##type##_f32( \
      float& c0, float& c1, float& c2, float& c3, unsigned a0, unsigned a1, unsigned a2,  \
      unsigned a3, unsigned b0, unsigned b1, int line = __builtin_LINE()) {               \
    float c[4] = {c0, c1, c2, c3};                                                        \
    mma_m16n8k16<to_float>(c, {a0, a1, a2, a3}, {b0, b1}, line);                          \
    c0 = c[0], c1 = c[1], c2 = c[2], c3 = c[3];                                           \
  }
RUNE_MMA(f16, to_float)
RUNE_MMA(bf16, bfloat_to_float)
#undef RUNE_MMA

}  // namespace rune_ptx
