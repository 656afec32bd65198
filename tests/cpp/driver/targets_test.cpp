// Each target computes every scalar operation: itself, or by what `decompose` makes of it.
#include "driver/targets.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "lower/builder.h"
#include "lower/passes/decompose.h"

namespace rune::driver {
namespace {

lower::Kernel kernel_of(const AluInfo& row, DType dtype) {
  lower::Kernel kernel;
  kernel.name = "k";
  lower::Builder b(std::move(kernel));
  const auto at = [&](int64_t i) { return b.constant(Scalar::of(DType::Int64, i)); };
  const lower::Var memory = b.define_global(dtype, 0, 64, true);
  const lower::Var x = b.load(memory, at(0), 2);
  std::vector<lower::Var> operands(static_cast<size_t>(row.arity), x);
  if (row.result == AluResult::Select) operands[0] = b.cast(x, DType::Bool);
  b.store(memory, at(2), b.cast(b.alu(row.op, operands), dtype));
  return b.take();
}

class EachTarget : public testing::TestWithParam<std::string> {
 protected:
  const Target& target() const { return find_target(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(All, EachTarget, testing::ValuesIn(target_names()), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

// What the passes leave over for a target's capabilities, its renderer can spell.
TEST_P(EachTarget, RendersEveryOperation) {
  const Capabilities& caps = target().capabilities();
  for (const AluInfo& row : all_alu_ops())
    for (int d = 0; d < kNumDTypes; ++d) {
      const auto dtype = static_cast<DType>(d);
      if (!row.accepts(dtype) || !caps.has_dtype(dtype)) continue;
      SCOPED_TRACE(testing::Message() << row.text << " of " << name_of(dtype));
      const lower::Kernel kernel =
          lower::decompose(lower::widen_narrow_floats(kernel_of(row, dtype), caps), caps);
      std::vector<std::string> texts;
      ASSERT_NO_THROW(texts = target().render({&kernel, 1}));
      EXPECT_NE(texts[0].find("k"), std::string::npos);
    }
}

TEST_P(EachTarget, EveryOperationHasACost) {
  for (const AluInfo& row : all_alu_ops())
    for (int d = 0; d < kNumDTypes; ++d)
      EXPECT_GT(cost_of(target().capabilities(), row.op, static_cast<DType>(d)), 0) << row.text;
}

TEST(Targets, GuardIntegerDivisionAndShifts) {
  for (const char* name : {"cpu", "metal", "cuda"}) {
    const Capabilities& caps = find_target(name).capabilities();
    for (const AluOp op :
         {AluOp::Div, AluOp::Idiv, AluOp::Mod, AluOp::Fmod, AluOp::Pow, AluOp::Shl, AluOp::Shr})
      EXPECT_FALSE(is_native(caps, op, DType::Int32)) << name << ' ' << name_of(op);
    EXPECT_TRUE(is_native(caps, AluOp::Fmod, DType::Float32)) << name;
  }
}

TEST(Targets, MetalHasTheElementaryOperations) {
  const Capabilities& caps = find_target("metal").capabilities();
  EXPECT_FALSE(is_native(caps, AluOp::Erf, DType::Float32));
  EXPECT_FALSE(is_native(caps, AluOp::Exp, DType::Float32));
  EXPECT_FALSE(caps.has_arithmetic(DType::Bfloat16));
  EXPECT_TRUE(caps.has_dtype(DType::Bfloat16));
  EXPECT_FALSE(caps.has_dtype(DType::Float64));
}

TEST(Targets, CudaHasWhatIsAccurate) {
  const Capabilities& caps = find_target("cuda").capabilities();
  EXPECT_TRUE(is_native(caps, AluOp::Exp, DType::Float32));
  EXPECT_TRUE(is_native(caps, AluOp::Pow, DType::Float64));
  EXPECT_FALSE(is_native(caps, AluOp::Pow, DType::Float32));
  EXPECT_FALSE(caps.has_arithmetic(DType::Float16));
  EXPECT_TRUE(caps.has_dtype(DType::Float64));
}

TEST(Targets, UnknownDevicesAreNamedWithTheKnownOnes) {
  EXPECT_THROW(find_target("cpu:x"), UserError);
  try {
    find_target("tpu");
    FAIL() << "nothing was thrown";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("cpu, metal, cuda"), std::string::npos);
  }
}

}  // namespace
}  // namespace rune::driver
