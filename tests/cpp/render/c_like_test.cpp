#include "render/c_like.h"

#include <gtest/gtest.h>

#include <limits>

#include "c_like_testing.h"
#include "render/cuda.h"
#include "render/identifier.h"
#include "render/msl.h"

namespace rune::render {
namespace {

using lower::Builder;
using lower::Var;

std::string msl_literal(const Scalar& v) {
  return c_like::literal(msl_dialect(), v);
}
std::string msl_alu(AluOp op, DType dtype, std::vector<std::string> operands, bool fits = false) {
  return c_like::alu(msl_dialect(), op, dtype, operands, fits);
}

TEST(Identifier, IsOneOfEveryLanguage) {
  EXPECT_EQ(identifier("fused_add_0"), "fused_add_0");
  EXPECT_EQ(identifier("add.mul--3"), "add_mul_3");
  EXPECT_EQ(identifier("3d"), "k_3d");
  EXPECT_EQ(identifier(""), "k_");
  EXPECT_EQ(identifier("__x"), "x");
  EXPECT_EQ(identifier("a__b"), "a_b");
  EXPECT_EQ(identifier("rune_max"), "k_rune_max");
  EXPECT_EQ(identifier("exp"), "exp_");
  EXPECT_EQ(identifier("expf"), "expf_");
  for (const char* word :
       {"kernel", "device", "threadgroup", "half", "exp", "max", "threadIdx", "vars", "class"})
    EXPECT_EQ(identifier(word), std::string(word) + '_');
}

TEST(CLike, IntegerLiterals) {
  EXPECT_EQ(msl_literal(Scalar::of(DType::Bool, true)), "true");
  EXPECT_EQ(msl_literal(Scalar::of(DType::Int32, 7)), "7");
  EXPECT_EQ(msl_literal(Scalar::of(DType::Int32, -7)), "(-7)");
  EXPECT_EQ(msl_literal(Scalar::of(DType::Int64, 7)), "7L");
  EXPECT_EQ(msl_literal(Scalar::of(DType::Uint32, -1)), "4294967295u");
  EXPECT_EQ(msl_literal(Scalar::of(DType::Uint64, -1)), "18446744073709551615UL");
  EXPECT_EQ(msl_literal(Scalar::lowest(DType::Int8)), "(-128)");
  EXPECT_EQ(msl_literal(Scalar::lowest(DType::Int32)), "((int)0x80000000u)");
  EXPECT_EQ(msl_literal(Scalar::lowest(DType::Int64)), "((long)0x8000000000000000UL)");
}

TEST(CLike, FloatLiteralsAreExact) {
  EXPECT_EQ(msl_literal(Scalar::of(DType::Float32, 1.0)), "1.0f");
  EXPECT_EQ(msl_literal(Scalar::of(DType::Float32, -0.1)), "(-0.1f)");
  EXPECT_EQ(msl_literal(Scalar::of(DType::Float32, 1e20)), "1e+20f");
  EXPECT_EQ(msl_literal(Scalar::of(DType::Float32, 0.0)), "0.0f");
  EXPECT_EQ(msl_literal(Scalar::of(DType::Float32, -0.0)), "as_type<float>(0x80000000u)");
  EXPECT_EQ(msl_literal(Scalar::highest(DType::Float32)), "as_type<float>(0x7f800000u)");
  EXPECT_EQ(msl_literal(Scalar::lowest(DType::Float32)), "as_type<float>(0xff800000u)");
  EXPECT_EQ(msl_literal(Scalar::of(DType::Float32, std::numeric_limits<double>::quiet_NaN())),
            "as_type<float>(0x7fc00000u)");
  EXPECT_EQ(msl_literal(Scalar::from_bits(DType::Float32, 1)), "as_type<float>(0x1u)");
  EXPECT_EQ(msl_literal(Scalar::of(DType::Float16, 0.1)), "(half)0.0999755859375f");
  EXPECT_EQ(msl_literal(Scalar::from_bits(DType::Float16, 1)), "as_type<half>((ushort)0x1)");
  EXPECT_EQ(msl_literal(Scalar::of(DType::Bfloat16, 1.0)), "as_type<bfloat>((ushort)0x3f80)");
  EXPECT_EQ(c_like::literal(cuda_dialect(), Scalar::of(DType::Float64, 0.1)), "0.1");
  EXPECT_EQ(c_like::literal(cuda_dialect(), Scalar::lowest(DType::Float64)),
            "rune_bitcast<double>(0xfff0000000000000ull)");
}

TEST(CLike, IntegersWrapInUnsignedTypes) {
  EXPECT_EQ(msl_alu(AluOp::Add, DType::Int32, {"a", "b"}), "(int)((uint)a + (uint)b)");
  EXPECT_EQ(msl_alu(AluOp::Mul, DType::Int64, {"a", "b"}), "(long)((ulong)a * (ulong)b)");
  EXPECT_EQ(msl_alu(AluOp::Mul, DType::Uint16, {"a", "b"}), "(ushort)((uint)a * (uint)b)");
  EXPECT_EQ(msl_alu(AluOp::Add, DType::Uint32, {"a", "b"}), "(a + b)");
  EXPECT_EQ(msl_alu(AluOp::Shl, DType::Int32, {"a", "b"}), "(int)((uint)a << b)");
  EXPECT_EQ(msl_alu(AluOp::Abs, DType::Int32, {"a"}), "(a < 0 ? (int)(0 - (uint)a) : a)");
  EXPECT_EQ(msl_alu(AluOp::Add, DType::Int64, {"a", "b"}, true), "(a + b)");
}

TEST(CLike, DialectsDifferByTheirTables) {
  EXPECT_EQ(msl_alu(AluOp::Sqrt, DType::Float32, {"x"}), "precise::sqrt(x)");
  EXPECT_EQ(msl_alu(AluOp::Sqrt, DType::Float16, {"x"}), "((half)precise::sqrt((float)x))");
  EXPECT_EQ(msl_alu(AluOp::Fmax, DType::Float32, {"x", "y"}), "rune_fmax(x, y)");
  EXPECT_EQ(
      c_like::alu(cuda_dialect(), AluOp::Exp, DType::Float32, std::vector<std::string>{"x"}, false),
      "expf(x)");
  EXPECT_EQ(
      c_like::alu(cuda_dialect(), AluOp::Erf, DType::Float64, std::vector<std::string>{"x"}, false),
      "erf(x)");
  EXPECT_EQ(c_like::alu(cuda_dialect(), AluOp::Fmax, DType::Float32,
                        std::vector<std::string>{"x", "y"}, false),
            "rune_fmax(x, y)");
}

TEST(CLike, RefusesWhatIsNotDecomposed) {
  EXPECT_NE(message_of<InternalError>([] {
              msl_alu(AluOp::Erf, DType::Float32, {"x"});
            }).find("erf on f32"),
            std::string::npos);
  EXPECT_THROW(msl_alu(AluOp::Add, DType::Bfloat16, {"x", "y"}), InternalError);
  EXPECT_EQ(msl_alu(AluOp::Where, DType::Bfloat16, {"c", "x", "y"}), "(c ? x : y)");
}

TEST(CLike, Casts) {
  const auto cast = [](DType from, DType to) { return c_like::cast(msl_dialect(), "x", from, to); };
  EXPECT_EQ(cast(DType::Float32, DType::Int32), "rune_to_int(x)");
  EXPECT_EQ(cast(DType::Float32, DType::Uint8), "(uchar)rune_to_int(x)");
  EXPECT_EQ(cast(DType::Float32, DType::Uint32), "(uint)rune_to_long(x)");
  EXPECT_EQ(cast(DType::Float32, DType::Uint64), "rune_to_ulong(x)");
  EXPECT_EQ(cast(DType::Float16, DType::Int64), "rune_to_long(((float)x))");
  EXPECT_EQ(cast(DType::Int64, DType::Bfloat16), "((bfloat)((float)x))");
  EXPECT_EQ(cast(DType::Float32, DType::Bool), "(x != 0.0f)");
  EXPECT_EQ(cast(DType::Int64, DType::Bool), "(x != 0L)");
  EXPECT_EQ(cast(DType::Int64, DType::Int8), "((char)x)");
  EXPECT_EQ(c_like::cast(cuda_dialect(), "x", DType::Float64, DType::Float16), "rune_to_half(x)");
  EXPECT_EQ(c_like::cast(cuda_dialect(), "x", DType::Float64, DType::Bfloat16),
            "rune_to_bfloat(x)");
  EXPECT_EQ(c_like::bitcast(msl_dialect(), "x", DType::Float32, DType::Int32), "as_type<int>(x)");
}

TEST(CLike, IndexArithmeticIsExactAndDataIsNot) {
  Builder b = kernel_named("k", 8, 64);
  const Var memory = b.define_global(DType::Int64, 0, 1 << 20, true);
  const Var task = b.special(lower::SpecialKind::Global_task_idx, 512, DType::Int64);
  const Var i = b.range(index_constant(b, 16));
  const Var row = b.alu(AluOp::Mul, {task, index_constant(b, 16)});
  const Var index = b.alu(AluOp::Add, {row, i});
  const Var x = b.load(memory, index);
  const Var sum = b.alu(AluOp::Add, {x, index});
  const Var huge = b.alu(AluOp::Mul, {index, index_constant(b, int64_t{1} << 60)});
  const Var rest = b.alu(AluOp::Fmod, {x, index_constant(b, 10)});
  const Var small = b.alu(AluOp::Add, {rest, rest});
  b.store(memory, index, b.alu(AluOp::Add, {sum, b.alu(AluOp::Add, {huge, small})}));
  b.end_range();
  const std::vector<bool> exact = c_like::exact_integers(b.kernel());
  EXPECT_TRUE(exact[row.id]);
  EXPECT_TRUE(exact[index.id]);
  EXPECT_FALSE(exact[sum.id]);
  EXPECT_FALSE(exact[huge.id]);
  EXPECT_TRUE(exact[small.id]);
}

}  // namespace
}  // namespace rune::render
