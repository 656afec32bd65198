#include "backends/cpu/cpu_capabilities.h"

#include <gtest/gtest.h>

#include "alu/alu.h"

namespace rune::runtime {
namespace {

TEST(CpuCapabilities, DescribeARealMachine) {
  const Capabilities& caps = cpu_capabilities();
  EXPECT_EQ(caps.model, ExecutionModel::Cores);
  EXPECT_GE(caps.num_cores, 1);
  EXPECT_TRUE(caps.vector_bits == 128 || caps.vector_bits == 256 || caps.vector_bits == 512);
  EXPECT_EQ(caps.lanes(DType::Float32), caps.vector_bits / 32);
  EXPECT_GE(caps.l2_bytes, 64 << 10);
  EXPECT_GE(caps.last_level_bytes, caps.l2_bytes);
  EXPECT_EQ(&caps, &cpu_capabilities());
}

TEST(CpuCapabilities, ListWhatTheRendererComputes) {
  const Capabilities& caps = cpu_capabilities();
  for (int d = 0; d < kNumDTypes; ++d) EXPECT_TRUE(caps.has_dtype(static_cast<DType>(d)));
  EXPECT_FALSE(caps.has_arithmetic(DType::Float16));
  EXPECT_FALSE(caps.has_arithmetic(DType::Bfloat16));
  EXPECT_FALSE(is_native(caps, AluOp::Add, DType::Float16));
  EXPECT_TRUE(is_native(caps, AluOp::Xor, DType::Bool));
  EXPECT_TRUE(is_native(caps, AluOp::Mulacc, DType::Float32));
  for (const DType dtype : {DType::Float32, DType::Float64})
    EXPECT_FALSE(is_native(caps, AluOp::Exp, dtype));
  EXPECT_TRUE(is_native(caps, AluOp::Erf, DType::Float64));
  EXPECT_FALSE(is_native(caps, AluOp::Erf, DType::Float32));
  for (const AluOp op :
       {AluOp::Div, AluOp::Idiv, AluOp::Mod, AluOp::Fmod, AluOp::Pow, AluOp::Shl, AluOp::Shr})
    EXPECT_FALSE(is_native(caps, op, DType::Int32)) << name_of(op);
}

}  // namespace
}  // namespace rune::runtime
