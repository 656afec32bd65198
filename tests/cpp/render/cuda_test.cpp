#include "render/cuda.h"

#include <gtest/gtest.h>

#include "c_like_testing.h"

namespace rune::render {
namespace {

using lower::Builder;
using lower::Var;

// Neighbours that are aligned wherever they begin are one access.
TEST(Cuda, Elementwise) {
  EXPECT_EQ(render_c_like(doubling(DType::Float64, true), cuda_dialect()), R"(
template <class T, int N>
struct __align__(sizeof(T) * N) rune_vector {
  T v[N];
  __device__ const T& operator[](int i) const { return v[i]; }
};

__device__ inline void rune_written(const void* memory) {
#if __CUDA_ARCH__ >= 900
  asm volatile("// %0;" ::"l"(memory) : "memory");
#endif
}

template <class... T>
__device__ inline void rune_begin(T*... memory) {
#if __CUDA_ARCH__ >= 900
  if (gridDim.x <= 256) asm volatile("griddepcontrol.launch_dependents;");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  (rune_written(memory), ...);
}

// 4 workgroups of 64 threads
extern "C" __global__ void __launch_bounds__(64)
doubling(double* __restrict__ b0,
         const double* __restrict__ b1) {
  rune_begin(b0, b1);
  const long long v2 = (long long)blockIdx.x * 64 + (long long)threadIdx.x;
  const long long v4 = v2 * 4ll;
  const bool v6 = v4 < 1000ll;
  double a7_0 = 0.0;
  double a7_1 = 0.0;
  double a7_2 = 0.0;
  double a7_3 = 0.0;
  if (v6) {
    const rune_vector<double, 2> p7_0 = *(const rune_vector<double, 2>*)(b1 + v4);
    const rune_vector<double, 2> p7_2 = *(const rune_vector<double, 2>*)(b1 + v4 + 2);
    a7_0 = p7_0[0];
    a7_1 = p7_0[1];
    a7_2 = p7_2[0];
    a7_3 = p7_2[1];
  }
  const double v8_0 = a7_0 + a7_0;
  const double v8_1 = a7_1 + a7_1;
  const double v8_2 = a7_2 + a7_2;
  const double v8_3 = a7_3 + a7_3;
  if (v6) {
    *(rune_vector<double, 2>*)(b0 + v4) = rune_vector<double, 2>{{v8_0, v8_1}};
    *(rune_vector<double, 2>*)(b0 + v4 + 2) = rune_vector<double, 2>{{v8_2, v8_3}};
  }
}
)");
}

TEST(Cuda, NeighboursThatMayNotBeAligned) {
  const auto text_of = [](int64_t factor, int64_t offset) {
    Builder b = kernel_named("k");
    const Var in = b.define_global(DType::Float32, 0, 1024, false);
    const Var out = b.define_global(DType::Float32, 1, 1024, true);
    const Var group = b.special(lower::SpecialKind::Workgroup_idx, 8, DType::Int32);
    const auto number = [&](int64_t n) { return b.constant(Scalar::of(DType::Int32, n)); };
    const Var at = b.alu(AluOp::Add, {b.alu(AluOp::Mul, {group, number(factor)}), number(offset)});
    b.store(out, at, b.load(in, at, 4));
    auto kernel = b.take();
    kernel.grid = 8;
    return render_c_like(kernel, cuda_dialect());
  };
  expect_contains(text_of(12, 8), "rune_vector<float, 4> p");
  expect_contains(text_of(12, 2), "rune_vector<float, 2> p");
  expect_lacks(text_of(12, 1), "rune_vector");
  expect_lacks(text_of(3, 8), "rune_vector");
}

// Loads of the path for constant memory move in front of stores, which helps where few threads wait
// for them, and in front of rune_begin(), which they must not.
TEST(Cuda, KernelsThatNeedEarlyLoadsDoNotBeginEarly) {
  const auto text_of = [](int64_t workgroups, bool in_loop) {
    Builder b = kernel_named("k");
    const Var in = b.define_global(DType::Float32, 0, 1024, false);
    const Var out = b.define_global(DType::Float32, 1, 1024, true);
    const Var end = index_constant(b, 4);
    Var at = index_constant(b, 0);
    if (in_loop) at = b.range(end);
    b.store(out, at, b.load(in, at));
    if (in_loop) b.end_range();
    auto kernel = b.take();
    kernel.grid = workgroups;
    return render_c_like(kernel, cuda_dialect());
  };
  expect_contains(text_of(1, false), "rune_begin(b0, b1);");
  expect_lacks(text_of(1, true), "rune_begin");
  expect_contains(text_of(1 << 16, true), "rune_begin(b0, b1);");
}

TEST(Cuda, NarrowFloatsAreBits) {
  Builder b = kernel_named("k");
  const Var out = b.define_global(DType::Float16, 0, 4, true);
  const Var x = b.cast(b.load(out, index_constant(b, 0)), DType::Float32);
  const Var y = b.cast(b.alu(AluOp::Exp, {x}), DType::Float16);
  b.store(out, index_constant(b, 1), y);
  const std::string text = render_c_like(b.take(), cuda_dialect());
  expect_contains(text, "struct rune_half { unsigned short bits; };");
  expect_contains(text, "= rune_from_half(v2);");
  expect_contains(text, "= expf(v3);");
  expect_contains(text, "= rune_to_half(v4);");
  expect_lacks(text, "#include");
}

TEST(Cuda, SymbolicVariablesAreOneStruct) {
  Builder b = kernel_named("k", 1, 32);
  const Var out = b.define_global(DType::Int64, 0, 4, true);
  const Var local = b.local(DType::Int64, 32);
  b.store(local, index_constant(b, 0), b.define_var({"n", 1, 100}));
  b.barrier();
  b.store(out, index_constant(b, 0), b.load(local, index_constant(b, 0)));
  const std::string text = render_c_like(b.take(), cuda_dialect());
  expect_contains(text, "const rune_vars<1> vars");
  expect_contains(text, "= vars.v[0];");
  expect_contains(text, "__shared__ __align__(16) long long m1[32];");
  expect_contains(text, "__syncthreads();");
}

}  // namespace
}  // namespace rune::render
