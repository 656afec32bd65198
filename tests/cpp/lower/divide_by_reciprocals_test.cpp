// Reciprocals replace divisions only where the device divides slowly enough.
#include "lower/passes/divide_by_reciprocals.h"

#include <gtest/gtest.h>

#include "alu/alu.h"
#include "lower/builder.h"

namespace rune::lower {
namespace {

constexpr int kVectorLanes = 8;

// out[i] = in[i] / c for so many vectors i.
Kernel quotients(int64_t vectors) {
  const auto number = [](int64_t v) { return Scalar::of(DType::Int64, v); };
  Builder b;
  const Var c = b.define_global(DType::Float32, 0, 1, false);
  const Var in = b.define_global(DType::Float32, 1, vectors * kVectorLanes, false);
  const Var out = b.define_global(DType::Float32, 2, vectors * kVectorLanes, true);
  const Var divisor = b.splat(b.load(c, b.constant(number(0))), kVectorLanes);
  const Var i = b.range(b.constant(number(vectors)));
  const Var at = b.alu(AluOp::Mul, {i, b.constant(number(kVectorLanes))});
  b.store(out, at, b.alu(AluOp::Fdiv, {b.load(in, at, kVectorLanes), divisor}));
  b.end_range();
  return b.take();
}

// Whether the pass uses reciprocals on a device whose divisions take as long as so many additions.
bool uses_reciprocals(double additions, int64_t vectors) {
  Capabilities caps;
  caps.arithmetic.set();
  set_elementary_native(caps);
  caps.vector_bits = 256;
  caps.operations_per_ns = rates_by_size(60);
  caps.divisions_per_ns = rates_by_size(60 / additions);
  const Kernel before = quotients(vectors);
  return divide_by_reciprocals(before, caps).body.size() != before.body.size();
}

TEST(DivideByReciprocals, DependsOnTheTimeOfDivisions) {
  EXPECT_TRUE(uses_reciprocals(20, 6));
  EXPECT_FALSE(uses_reciprocals(20, 5));
  EXPECT_TRUE(uses_reciprocals(9, 19));
  EXPECT_FALSE(uses_reciprocals(9, 18));
  EXPECT_FALSE(uses_reciprocals(5, 1 << 20));
  EXPECT_FALSE(uses_reciprocals(2, 1 << 20));
}

}  // namespace
}  // namespace rune::lower
