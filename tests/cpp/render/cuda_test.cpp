#include "render/cuda.h"

#include <gtest/gtest.h>

#include "c_like_testing.h"

namespace rune::render {
namespace {

using lower::Builder;
using lower::Var;

TEST(Cuda, Elementwise) {
  EXPECT_EQ(render_c_like(doubling(DType::Float64, true), cuda_dialect()), R"(
// 4 workgroups of 64 threads
extern "C" __global__ void __launch_bounds__(64)
doubling(double* __restrict__ b0,
         const double* __restrict__ b1) {
  const long long v2 = (long long)blockIdx.x * 64 + (long long)threadIdx.x;
  const long long v4 = v2 * 4ll;
  const bool v6 = v4 < 1000ll;
  const double v7_0 = v6 ? b1[v4] : 0.0;
  const double v7_1 = v6 ? b1[v4 + 1] : 0.0;
  const double v7_2 = v6 ? b1[v4 + 2] : 0.0;
  const double v7_3 = v6 ? b1[v4 + 3] : 0.0;
  const double v8_0 = v7_0 + v7_0;
  const double v8_1 = v7_1 + v7_1;
  const double v8_2 = v7_2 + v7_2;
  const double v8_3 = v7_3 + v7_3;
  if (v6) {
    b0[v4] = v8_0;
  }
  if (v6) {
    b0[v4 + 1] = v8_1;
  }
  if (v6) {
    b0[v4 + 2] = v8_2;
  }
  if (v6) {
    b0[v4 + 3] = v8_3;
  }
}
)");
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
