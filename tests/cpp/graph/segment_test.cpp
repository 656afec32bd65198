// Segments: what they read, compute and store, and their programs.
#include "graph/segment_sizes.h"

#include <gtest/gtest.h>

#include "graph/graph_testing.h"

namespace rune::graph {
namespace {

// x * a + b, its square root, and a row of it.
struct Example {
  Builder builder;
  Value x, sum, root, row;

  explicit Example(double a = 2, double b = 1) {
    x = builder.placeholder(DType::Float32, {4, 3});
    const auto number = [&](double value) {
      return builder.full(Scalar::of(DType::Float32, value), {4, 3});
    };
    const Value product = builder.alu(AluOp::Mul, {x, number(a)});
    sum = builder.alu(AluOp::Add, {product, number(b)});
    root = builder.alu(AluOp::Sqrt, {sum});
    row = builder.shrink(sum, {{1, 2}, {0, 3}});
  }
  Segment cut(const std::vector<Value>& wanted, const std::vector<Value>& live) {
    return cut_segment(builder.graph(), wanted, live, {x.id});
  }
};

TEST(SegmentTest, StoresWhatIsWantedAndWhatLiveMovementsRead) {
  Example e;
  const Segment segment = e.cut({e.root}, {e.row, e.x});
  EXPECT_EQ(segment.inputs, std::vector<Value>{e.x});
  EXPECT_EQ(segment.outputs, (std::vector<Value>{e.sum, e.root}));
  EXPECT_EQ(segment.held, (std::vector<Value>{e.sum, e.x}));
  EXPECT_EQ(segment.constants.size(), 2);
  EXPECT_GT(segment.numpy_ns, 3 * 700);
}

TEST(SegmentTest, EstimatesGrowWithWhatIsComputed) {
  Builder builder;
  const auto argument = [&](Shape shape) { return builder.placeholder(DType::Float64, shape); };
  const Value number = argument({}), few = argument({10}), many = argument({1'000'000});
  const auto ns = [&](Value v) { return numpy_ns(builder.graph(), v); };
  const auto of = [&](AluOp op, Value x) { return builder.alu(op, {x}); };
  EXPECT_EQ(ns(few), 0);
  EXPECT_LT(ns(of(AluOp::Neg, number)), ns(of(AluOp::Neg, few)));
  EXPECT_LT(ns(of(AluOp::Neg, few)), 1000);
  EXPECT_GT(ns(of(AluOp::Neg, many)), 1e6);
  EXPECT_GT(ns(of(AluOp::Exp, many)), 1.5 * ns(of(AluOp::Neg, many)));
  const auto compile = [&](AluOp op) { return compile_ns(builder.graph(), of(op, few)); };
  EXPECT_LT(compile(AluOp::Neg), compile(AluOp::Exp));
  EXPECT_LT(compile(AluOp::Exp), compile(AluOp::Sin));
}

TEST(SegmentTest, AWriteToAPartTakesNumPyAsLongAsThePart) {
  Builder builder;
  const Value array = builder.placeholder(DType::Float64, {1'000'000});
  const Value part = builder.placeholder(DType::Float64, {10});
  const Value written = builder.add(Update{{20}}, {array, part});
  const Value all = builder.alu(AluOp::Neg, {array});
  EXPECT_LT(numpy_ns(builder.graph(), written), 1000);
  EXPECT_GT(numpy_ns(builder.graph(), all), 1e6);
}

TEST(SegmentTest, ReductionsToManyResultsAreKernels) {
  Builder builder;
  const auto sizes = [&](Shape shape, int axis) {
    const Value x = builder.placeholder(DType::Float64, std::move(shape));
    return kernel_sizes(builder.graph(), builder.reduce(ReduceOp::Max, x, {axis}));
  };
  EXPECT_FALSE(sizes({300, 2}, 1).empty());
  EXPECT_EQ(sizes({300, 2}, 1), sizes({300, 2}, 1));
  EXPECT_NE(sizes({300, 2}, 1), sizes({299, 2}, 1));
  EXPECT_TRUE(sizes({300, 2}, 0).empty());
}

TEST(SegmentTest, HoldsWantedMovementsThatLive) {
  Example e;
  const Segment segment = e.cut({e.row}, {e.row});
  EXPECT_EQ(segment.outputs, std::vector<Value>{e.row});
  EXPECT_EQ(segment.held, std::vector<Value>{e.row});
}

TEST(SegmentTest, ComputesNothingThatIsInMemory) {
  Example e;
  const Segment segment = cut_segment(e.builder.graph(), {e.root}, {}, {e.x.id, e.sum.id});
  EXPECT_EQ(segment.inputs, std::vector<Value>{e.sum});
  EXPECT_EQ(segment.nodes, std::vector<Value>{e.root});
  EXPECT_TRUE(cut_segment(e.builder.graph(), {e.sum}, {}, {e.x.id, e.sum.id}).outputs.empty());
}

TEST(SegmentTest, ConstantsAreNotPartOfThePattern) {
  Example a, b(3, 1), c;
  EXPECT_EQ(a.cut({a.sum}, {}).pattern, b.cut({b.sum}, {}).pattern);
  EXPECT_NE(a.cut({a.sum}, {}).pattern, c.cut({c.root}, {}).pattern);
  EXPECT_NE(a.cut({a.sum}, {}).pattern, a.cut({a.sum, a.root}, {}).pattern);
  EXPECT_NE(a.cut({a.row}, {}).pattern, a.cut({a.sum}, {}).pattern);
}

TEST(SegmentTest, ConstantsMayBeArguments) {
  Example e;
  const Segment segment = e.cut({e.sum}, {});
  const Graph whole = program_of(e.builder.graph(), segment, {});
  expect_valid(whole);
  EXPECT_EQ(whole.inputs().size(), 1);
  const Graph program = program_of(e.builder.graph(), segment, {1});
  expect_valid(program);
  ASSERT_EQ(program.inputs().size(), 2);
  EXPECT_EQ(program[program.inputs()[1]].shape(), Shape{});
  EXPECT_EQ(program.size(), whole.size());
}

TEST(SegmentTest, NothingLooksBehindAnArgument) {
  Example e;
  e.builder.make_argument(e.sum);
  EXPECT_NE(e.builder[e.sum].as<Placeholder>(), nullptr);
  EXPECT_TRUE(e.builder[e.sum].inputs.empty());
  const Segment segment = cut_segment(e.builder.graph(), {e.root}, {}, {e.x.id, e.sum.id});
  expect_valid(program_of(e.builder.graph(), segment, {}));
}

// The differences of x[:n] without its first element, as a row, beside c[n] columns.
struct Sized {
  Builder builder;
  Value x, part, result;

  Sized(int64_t all, int64_t n, int64_t columns) {
    x = builder.placeholder(DType::Float32, {all});
    part = builder.shrink(x, {{0, n}});
    const Value rest = builder.shrink(part, {{1, n}});
    const Value row = builder.reshape(rest, {n - 1, 1});
    result = builder.expand(row, {n - 1, columns});
  }
  Segment cut() { return cut_segment(builder.graph(), {result}, {}, {x.id}); }
  SegmentSizes symbolic(const std::vector<Ints>& seen) {
    return symbolic_sizes(builder.graph(), cut(), seen);
  }
};

TEST(SegmentSizesTest, WhatDiffersIsSymbolic) {
  Sized a(100, 60, 3), b(100, 40, 3);
  EXPECT_EQ(a.cut().pattern, b.cut().pattern);
  EXPECT_NE(a.cut().sizes, b.cut().sizes);
  const SegmentSizes sizes = b.symbolic({a.cut().sizes, b.cut().sizes});
  ASSERT_EQ(sizes.vars.size(), 1);
  EXPECT_EQ(sizes.vars[0].max_val, 100);  // a part is not longer than the whole
  EXPECT_EQ(sizes.values_for(a.cut().sizes), Ints{60});
  EXPECT_EQ(sizes.values_for(b.cut().sizes), Ints{40});
  EXPECT_EQ(sizes.values_for(Sized(100, 7, 3).cut().sizes), Ints{7});
  EXPECT_EQ(sizes.values_for(Sized(100, 7, 4).cut().sizes), std::nullopt);
  const Graph program = program_of(b.builder.graph(), b.cut(), {}, sizes);
  expect_valid(program);
  EXPECT_EQ(program.symbolic_vars(), sizes.vars);
  EXPECT_EQ(shape_text(program[program.outputs[0]].shape()), "[n0-1,3]");
}

TEST(SegmentSizesTest, SizesThatWereEqualMayDifferLater) {
  Sized a(100, 60, 60), b(100, 40, 40), c(100, 40, 30);
  const SegmentSizes one = b.symbolic({a.cut().sizes, b.cut().sizes});
  EXPECT_EQ(one.vars.size(), 1);
  EXPECT_EQ(one.values_for(c.cut().sizes), std::nullopt);
}

TEST(SegmentSizesTest, SizesOfArgumentsGrow) {
  const auto limit = [](int64_t first, int64_t second) {
    Sized a(first, 5, 1), b(second, 5, 1);
    return b.symbolic({a.cut().sizes, b.cut().sizes}).vars.at(0);
  };
  EXPECT_EQ(limit(7, 9), (SymVar{"n0", 7, 256}));  // 5 elements are read
  EXPECT_EQ(limit(1000, 900), (SymVar{"n0", 8, 1024}));
  EXPECT_EQ(limit(900, 1000), (SymVar{"n0", 8, 4096}));
}

TEST(SegmentSizesTest, SizesOfArgumentsAreNotNegative) {
  const auto cut = [](Builder& builder, int64_t n) {
    const Value x = builder.placeholder(DType::Float32, {n});
    const Value y = builder.placeholder(DType::Float32, {n - 2});
    const Value both = builder.cat({x, y}, 0);
    return cut_segment(builder.graph(), {both}, {}, {x.id, y.id});
  };
  Builder a, b;
  const Segment first = cut(a, 60), second = cut(b, 40);
  const SegmentSizes sizes = symbolic_sizes(b.graph(), second, {first.sizes, second.sizes});
  ASSERT_EQ(sizes.vars.size(), 1);
  EXPECT_GE(sizes.vars[0].min_val, 2);
  expect_valid(program_of(b.graph(), second, {}, sizes));
}

TEST(SegmentSizesTest, RefusesWhatIsNoExpression) {
  Sized a(100, 60, 1), b(90, 40, 1);  // a part of an array of which the length differs, too
  EXPECT_THROW(b.symbolic({a.cut().sizes, b.cut().sizes}), UserError);
}

}  // namespace
}  // namespace rune::graph
