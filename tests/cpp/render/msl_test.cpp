#include "render/msl.h"

#include <gtest/gtest.h>

#include "c_like_testing.h"
#include "lower/passes/decompose.h"
#include "render/c_like.h"
#include "render/cuda.h"

namespace rune::render {
namespace {

using lower::Builder;
using lower::Var;

TEST(Msl, Elementwise) {
  EXPECT_EQ(render_msl(doubling(DType::Float32, false)), R"(#include <metal_stdlib>
#pragma METAL fp contract(off)
#if __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#endif
using namespace metal;

// 4 workgroups of 64 threads
[[kernel, max_total_threads_per_threadgroup(64)]]
void doubling(device float* b0 [[buffer(0)]],
              device const float* b1 [[buffer(1)]],
              uint3 gid [[threadgroup_position_in_grid]],
              uint3 lid [[thread_position_in_threadgroup]],
              uint3 tid [[thread_position_in_grid]]) {
  const long v2 = (long)tid.x;
  const long v4 = v2 * 4L;
  const packed_float4 p5_0 = *(device const packed_float4*)(b1 + v4);
  const float v5_0 = p5_0[0];
  const float v5_1 = p5_0[1];
  const float v5_2 = p5_0[2];
  const float v5_3 = p5_0[3];
  const float v6_0 = v5_0 + v5_0;
  const float v6_1 = v5_1 + v5_1;
  const float v6_2 = v5_2 + v5_2;
  const float v6_3 = v5_3 + v5_3;
  *(device packed_float4*)(b0 + v4) = packed_float4(v6_0, v6_1, v6_2, v6_3);
}
)");
}

TEST(Msl, MaskedAccessesAreNotMade) {
  const std::string text = render_msl(doubling(DType::Float32, true));
  expect_contains(text, "float a7_3 = 0.0f;\n  if (v6) {\n    const packed_float4 p7_0 =");
  expect_contains(text, "if (v6) {\n    *(device packed_float4*)(b0 + v4) =");
  expect_contains(render_msl(doubling(DType::Int64, true)),
                  "const long v7_3 = v6 ? b1[v4 + 3] : 0L;");
}

TEST(Msl, WideVectorsMoveInChunks) {
  Builder b = kernel_named("k");
  const Var out = b.define_global(DType::Float32, 0, 64, true);
  const Var x = b.load(out, index_constant(b, 1), 7);
  b.store(out, index_constant(b, 0), x);
  const std::string text = render_msl(b.take());
  expect_contains(text, "const packed_float4 p2_0 = *(device const packed_float4*)(b0 + 1L);");
  expect_contains(text, "const packed_float2 p2_4 = *(device const packed_float2*)(b0 + 1L + 4);");
  expect_contains(text, "const float v2_6 = b0[1L + 6];");
}

TEST(Msl, BoolIsAByteInMemory) {
  Builder b = kernel_named("k");
  const Var out = b.define_global(DType::Bool, 0, 64, true);
  const Var zero = index_constant(b, 0);
  b.store(out, zero, b.load(out, zero, 1));
  const std::string text = render_msl(b.take());
  expect_contains(text, "device uchar* b0");
  expect_contains(text, "const bool v2 = b0[0L] != 0;");
}

TEST(Msl, SharedMemoryAndBarriers) {
  Builder b = kernel_named("k", 1, 32);
  const Var out = b.define_global(DType::Float32, 0, 32, true);
  const Var local = b.local(DType::Float32, 32);
  const Var scratch = b.local(DType::Int8, 16);
  const Var thread = b.special(lower::SpecialKind::Local_thread_idx, 32, DType::Int32);
  b.store(local, thread, b.constant(Scalar::of(DType::Float32, 1.0)));
  b.store(scratch, b.constant(Scalar::of(DType::Int32, 0)), b.constant(Scalar::of(DType::Int8, 1)));
  b.barrier();
  b.store(out, thread, b.load(local, thread));
  const std::string text = render_msl(b.take());
  expect_contains(text, "  threadgroup float m1[32];\n  threadgroup char m2[16];\n");
  expect_contains(text, "  const int v3 = (int)lid.x;\n");
  expect_contains(text,
                  "\n  threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);\n");
}

TEST(Msl, AccKeepsItsPlaceAndItsCopiesDoNot) {
  Builder b = kernel_named("k");
  const Var out = b.define_global(DType::Float32, 0, 4, true);
  const Var acc = b.acc(b.constant(Scalar::of(DType::Float32, 0.0), 2));
  const Var swapped = b.shuffle(acc, {1, 0});
  b.range(index_constant(b, 3));
  b.assign(acc, b.shuffle(acc, {1, 0}));
  b.end_range();
  b.store(out, index_constant(b, 0), swapped);
  const std::string text = render_msl(b.take());
  expect_contains(text, "  float a2_0 = 0.0f;\n  float a2_1 = 0.0f;\n");
  expect_contains(text, "  const float v3_0 = a2_1;\n  const float v3_1 = a2_0;\n");
  // Both lanes are read before either is written.
  expect_contains(text,
                  "    const float v6_0 = a2_1;\n    const float v6_1 = a2_0;\n    a2_0 = v6_0;\n  "
                  "  a2_1 = v6_1;\n");
}

TEST(Msl, SymbolicVariablesShareOneSlot) {
  Builder b = kernel_named("k");
  const Var out = b.define_global(DType::Int64, 0, 4, true);
  const Var n = b.define_var({"n", 1, 100});
  const Var m = b.define_var({"m", 1, 100}, DType::Int32);
  const Var i = b.range(n);
  b.store(out, i, b.cast(m, DType::Int64));
  b.end_range();
  const std::string text = render_msl(b.take());
  expect_contains(text, "constant long* vars [[buffer(1)]]");
  expect_contains(text, "const long v1 = vars[0];");
  expect_contains(text, "const int v2 = (int)vars[1];");
  expect_contains(text, "for (long i3 = 0; i3 < v1; ++i3) {");
}

TEST(Msl, HelpersOnlyWhereUsed) {
  Builder b = kernel_named("k");
  const Var out = b.define_global(DType::Float32, 0, 4, true);
  const Var x = b.load(out, index_constant(b, 0));
  b.store(out, index_constant(b, 1), b.alu(AluOp::Fmax, {x, x}));
  const std::string text = render_msl(b.take());
  EXPECT_LT(text.find("inline float rune_fmax"), text.find("[[kernel"));
  expect_lacks(text, "rune_max");
  expect_lacks(text, "rune_to_int");
}

TEST(Msl, Float64IsRefused) {
  const std::string text =
      message_of<UserError>([] { render_msl(doubling(DType::Float64, false)); });
  expect_contains(text, "metal: cannot render float64 in kernel doubling");
  expect_contains(text, "hint: cast to float32");
}

TEST(Msl, LimitsAreNamed) {
  Builder many = kernel_named("many");
  for (int i = 0; i < 542; ++i) many.define_global(DType::Float32, i, 4, true);
  expect_contains(message_of<UserError>([&] { render_msl(many.kernel()); }),
                  "metal: cannot render kernel many with 542 buffers (MSL allows 541)");
  Builder large = kernel_named("large");
  large.local(DType::Float32, 4096);
  large.local(DType::Float32, 4097);
  expect_contains(message_of<UserError>([&] { render_msl(large.kernel()); }),
                  "with 32772 bytes of workgroup memory (MSL allows 32768)");
  Builder aligned = kernel_named("aligned");  // each variable begins at a multiple of 16 bytes
  aligned.local(DType::Float32, 1);
  aligned.local(DType::Float32, 8191);
  expect_contains(message_of<UserError>([&] { render_msl(aligned.kernel()); }),
                  "with 32780 bytes of workgroup memory (MSL allows 32768)");
}

TEST(Msl, LibrariesHoldEachNameOnce) {
  const lower::Kernel kernels[] = {doubling(DType::Float32, false), doubling(DType::Int32, false)};
  EXPECT_THROW(render_c_like_library(kernels, msl_dialect()), InternalError);
  lower::Kernel other = kernels[1];
  other.name = "other";
  const lower::Kernel both[] = {kernels[0], other};
  const std::string text = render_c_like_library(both, msl_dialect());
  EXPECT_EQ(text.find("#include"), text.rfind("#include"));
  expect_contains(text, "\nvoid other(");
}

}  // namespace
}  // namespace rune::render
