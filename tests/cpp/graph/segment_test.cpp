// Segments: what they read, compute and store, and their programs.
#include "graph/segment.h"

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
  EXPECT_EQ(segment.outputs, (std::vector<Value>{e.root, e.sum}));
  EXPECT_EQ(segment.held, (std::vector<Value>{e.x, e.sum}));
  EXPECT_EQ(segment.constants.size(), 2);
  EXPECT_GT(segment.numpy_ns, 3 * 700);
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

TEST(SegmentTest, ConstantsAreNotPartOfTheStructure) {
  Example a, b(3, 1), c;
  EXPECT_EQ(a.cut({a.sum}, {}).structure, b.cut({b.sum}, {}).structure);
  EXPECT_NE(a.cut({a.sum}, {}).structure, c.cut({c.root}, {}).structure);
  EXPECT_NE(a.cut({a.sum}, {}).structure, a.cut({a.sum, a.root}, {}).structure);
  EXPECT_NE(a.cut({a.row}, {}).structure, a.cut({a.sum}, {}).structure);
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

}  // namespace
}  // namespace rune::graph
