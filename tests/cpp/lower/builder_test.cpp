#include "lower/builder.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "lower/text.h"

namespace rune::lower {
namespace {

std::string text_of(const Builder& b, Var v) {
  return print_instr(b.kernel(), v);
}

TEST(Builder, InfersTypes) {
  Builder b;
  const Var g = b.define_global(DType::Float32, 0, 64, true);
  EXPECT_EQ(b.type(g), (Type{DType::Float32, 1, true}));
  const Var i = b.constant(Scalar::of(DType::Int64, 3));
  const Var x = b.load(g, i, 8);
  EXPECT_EQ(b.type(x), (Type{DType::Float32, 8}));
  EXPECT_EQ(b.type(b.alu(AluOp::Cmplt, {x, x})), (Type{DType::Bool, 8}));
  EXPECT_EQ(b.type(b.alu(AluOp::Where, {b.alu(AluOp::Cmplt, {x, x}), x, x})), b.type(x));
  const Var index = b.vconst({Scalar::of(DType::Int64, 1), Scalar::of(DType::Int64, 0)});
  EXPECT_EQ(b.type(b.load(g, index)), (Type{DType::Float32, 2}));
  EXPECT_EQ(b.type(b.shuffle(x, {7, 1, 2})), (Type{DType::Float32, 3}));
  EXPECT_EQ(b.type(b.cast(x, DType::Int32)), (Type{DType::Int32, 8}));
  EXPECT_EQ(b.type(b.bitcast(x, DType::Uint32)), (Type{DType::Uint32, 8}));
  EXPECT_EQ(b.type(b.splat(i, 4)), (Type{DType::Int64, 4}));
  EXPECT_EQ(b.type(b.range(i)), (Type{DType::Int64}));
  EXPECT_EQ(b.type(b.acc(x)), b.type(x));
}

TEST(Builder, LeavesOutWhatChangesNothing) {
  Builder b;
  const Var i = b.constant(Scalar::of(DType::Int64, 3), 4);
  EXPECT_EQ(b.splat(i, 4), i);
  EXPECT_EQ(b.cast(i, DType::Int64), i);
  EXPECT_EQ(b.bitcast(i, DType::Int64), i);
}

TEST(Builder, RefusesOperandsOfWhichNoTypeFollows) {
  Builder b;
  const Var i = b.constant(Scalar::of(DType::Int64, 3));
  const Var f = b.constant(Scalar::of(DType::Float32, 3), 4);
  EXPECT_THROW(b.alu(AluOp::Add, {i, f}), InternalError);
  EXPECT_THROW(b.alu(AluOp::Add, {i}), InternalError);
  EXPECT_THROW(b.alu(AluOp::Exp, {i}), InternalError);
}

TEST(Builder, PrintsEachAsWritten) {
  Builder b;
  const Var g = b.define_global(DType::Float32, 0, 64, true);
  EXPECT_EQ(text_of(b, g), "%0 = define_global index=0 size=64 writable=true : ptr f32");
  const Var i = b.special(SpecialKind::Workgroup_idx, 4, DType::Int64);
  EXPECT_EQ(text_of(b, i), "%1 = special Workgroup_idx bound=4 : i64");
  const Var x = b.load(g, i, 16);
  EXPECT_EQ(text_of(b, x), "%2 = load %0 %1 : f32x16");
  EXPECT_EQ(text_of(b, b.alu(AluOp::Mul, {x, x})), "%3 = alu mul %2 %2 : f32x16");
  b.store(g, i, x);
  EXPECT_EQ(text_of(b, Var{4}), "store nontemporal=false %0 %1 %2");
}

TEST(Kernel, GlobalsAreOrderedByIndex) {
  Builder b;
  const Var second = b.define_global(DType::Float32, 1, 4, true);
  const Var first = b.define_global(DType::Int8, 0, 4, false);
  EXPECT_EQ(b.kernel().globals(), (std::vector<Var>{first, second}));
}

TEST(Kernel, TypesOfInstructionsWithoutValuesAreNotCompared) {
  Kernel a, b;
  a.body.push_back({Barrier{}, {}, {DType::Int8, 1}});
  b.body.push_back({Barrier{}, {}, {DType::Float64, 2}});
  EXPECT_EQ(a, b);
  a.body.push_back({Const{Scalar::of(DType::Int8, 1)}, {}, {DType::Int8, 1}});
  b.body.push_back({Const{Scalar::of(DType::Int8, 1)}, {}, {DType::Int8, 2}});
  EXPECT_NE(a, b);
}

}  // namespace
}  // namespace rune::lower
