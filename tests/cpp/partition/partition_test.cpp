#include "partition/partition.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "graph/builder.h"
#include "graph/text.h"
#include "graph/verify.h"
#include "partition/needs.h"
#include "partition/reshaping.h"

namespace rune::partition {
namespace {

using graph::Builder;
using graph::Value;

TEST(Box, UnionOfNearBoxesIsOneBox) {
  std::vector<Box> boxes;
  add_box(boxes, {{0, 10}});
  add_box(boxes, {{2, 12}});
  EXPECT_EQ(boxes, (std::vector<Box>{{{0, 12}}}));
  add_box(boxes, {{3, 4}});  // inside
  add_box(boxes, {{5, 5}});  // empty
  EXPECT_EQ(boxes, (std::vector<Box>{{{0, 12}}}));
}

TEST(Box, BoxesThatLieApartStayApart) {
  std::vector<Box> boxes;
  add_box(boxes, {{0, 10}});
  add_box(boxes, {{90, 100}});
  EXPECT_EQ(boxes.size(), 2u);
  add_box(boxes, {{10, 90}});  // joins them
  EXPECT_EQ(boxes, (std::vector<Box>{{{0, 100}}}));
}

TEST(Box, ManyBoxesBecomeOne) {
  std::vector<Box> boxes;
  for (int64_t i = 0; i < 10; ++i) add_box(boxes, {{100 * i, 100 * i + 1}});
  EXPECT_LE(boxes.size(), 6u);
  for (int64_t i = 0; i < 10; ++i)
    EXPECT_TRUE(std::any_of(boxes.begin(), boxes.end(), [&](const Box& box) {
      return contains(box, {{100 * i, 100 * i + 1}});
    }));
}

// Of a box of the result, the elements at its places in the operand are within the operand's box.
TEST(Reshaping, BoxesHoldWhatTheyNeed) {
  const std::vector<std::pair<Ints, Ints>> shapes{
      {{24}, {4, 6}},      {{4, 6}, {24}},      {{2, 3, 4}, {6, 4}},  {{6, 4}, {2, 12}},
      {{5, 4}, {5, 2, 2}}, {{1, 6}, {6, 1, 1}}, {{3, 4, 5}, {12, 5}}, {{2, 12, 3}, {8, 9}}};
  for (const auto& [from, to] : shapes) {
    const int64_t count = num_elements(to);
    for (int64_t first = 0; first < count; ++first)
      for (int64_t last = first; last < count; ++last) {
        Box box;
        int64_t a = first, b = last, stride = count;
        for (const int64_t size : to) {
          stride /= size;
          const int64_t low = a / stride, high = b / stride;
          box.emplace_back(std::min(low, high), std::max(low, high) + 1);
          a %= stride;
          b %= stride;
        }
        const Reshaping reshaping = reshaping_of(from, to, box);
        EXPECT_TRUE(contains(reshaping.wide, box));
        for (int64_t position = 0; position < count; ++position) {
          const auto at = [position](const Ints& shape) {
            Box point;
            int64_t rest = position, inner = num_elements(shape);
            for (const int64_t size : shape) {
              inner /= size;
              point.emplace_back(rest / inner, rest / inner + 1);
              rest %= inner;
            }
            return point;
          };
          if (contains(box, at(to))) {
            EXPECT_TRUE(contains(reshaping.operand, at(from)));
          }
        }
      }
  }
}

TEST(Reshaping, ChunksOfOuterAxesStay) {
  EXPECT_EQ(reshaped_chunks({6, 4}, {24}, {{2, 4}, {4}}), (Chunks{{8, 16}}));
  EXPECT_EQ(reshaped_chunks({24}, {6, 4}, {{8, 16}}), (Chunks{{2, 4}, {4}}));
  EXPECT_EQ(reshaped_chunks({6, 4}, {6, 2, 2}, {{2, 4}, {4}}), (Chunks{{2, 4}, {2}, {2}}));
  EXPECT_EQ(reshaped_chunks({6, 4}, {24}, {{6}, {2, 2}}), Chunks{{24}});
  EXPECT_EQ(reshaped_chunks({6, 4}, {24}, {{2, 4}, {2, 2}}), (Chunks{{8, 16}}));
  EXPECT_EQ(reshaped_chunks({8}, {2, 4}, {{2, 2, 2, 2}}), (Chunks{{1, 1}, {4}}));
}

// Every node but the first few of a program with a halo is shared by the blocks inside.
TEST(Partition, BlocksInsideShareAProgram) {
  Builder b;
  const Value x = b.placeholder(DType::Float32, {1000});
  const Value sum = b.alu(AluOp::Add, {b.slice(x, 0, 0, 998), b.slice(x, 0, 2, 1000)});
  b.set_outputs({b.pad(sum, {{1, 1}})});
  const Plan plan = partition(b.graph(), {{Ints(100, 10)}});
  ASSERT_EQ(plan.passes.size(), 1u);
  EXPECT_EQ(plan.passes[0].programs.size(), 100u);
  EXPECT_EQ(plan.programs.size(), 3u);
  for (const graph::Graph& program : plan.programs)
    EXPECT_EQ(graph::verify(program, graph::Dialect::Core), std::vector<std::string>{});
  EXPECT_EQ(plan.passes[0].operands[5][0].box, (Box{{49, 61}}));
}

TEST(Partition, APairOfBlocksIsTwoBoxes) {
  Builder b;
  const Value x = b.placeholder(DType::Float32, {100, 100});
  b.set_outputs({b.alu(AluOp::Add, {x, b.permute(x, {1, 0})})});
  const Plan plan = partition(b.graph(), {{Ints(10, 10), Ints(10, 10)}});
  const std::vector<Operand>& operands = plan.passes[0].operands[7];  // row 0, column 7
  ASSERT_EQ(operands.size(), 2u);
  EXPECT_EQ(volume(operands[0].box) + volume(operands[1].box), 200);
}

TEST(Partition, OutputsMayBeArguments) {
  Builder b;
  const Value x = b.placeholder(DType::Float32, {4});
  b.set_outputs({x, x});
  const Plan plan = partition(b.graph(), {{{2, 2}}});
  EXPECT_TRUE(plan.passes.empty());
  EXPECT_EQ(plan.outputs, (std::vector<size_t>{0, 0}));
}

TEST(Partition, ArraysOfNoElements) {
  Builder b;
  const Value x = b.placeholder(DType::Float32, {0, 4});
  b.set_outputs({b.reduce(ReduceOp::Add, x, {0}), b.alu(AluOp::Neg, {x})});
  const Plan plan = partition(b.graph(), {{{0}, {2, 2}}});
  for (const graph::Graph& program : plan.programs)
    EXPECT_EQ(graph::verify(program, graph::Dialect::Core), std::vector<std::string>{});
  EXPECT_EQ(plan.passes[0].programs.size(), 2u);
}

TEST(Partition, ScansAreCutBeside) {
  Builder b;
  const Value x = b.placeholder(DType::Float32, {6, 8});
  b.set_outputs({b.scan(ReduceOp::Add, x, 1)});
  EXPECT_EQ(partition(b.graph(), {{{3, 3}, {8}}}).passes[0].programs.size(), 2u);
  const Plan along = partition(b.graph(), {{{6}, {4, 4}}});
  ASSERT_EQ(along.passes[0].operands.size(), 1u);
  EXPECT_EQ(along.passes[0].operands[0][0].box, (Box{{0, 6}, {0, 8}}));
}

// Two results of one call, and a program of a later level that reads them.
TEST(Partition, CallsArePasses) {
  Builder b;
  const Value x = b.placeholder(DType::Float32, {6, 8});
  const graph::Metadata declared{DType::Float32, {6, 8}, std::nullopt};
  const Value first = b.add(graph::Host_Callback{"f", 0, 0, 1}, {x}, declared);
  const Value second = b.add(graph::Host_Callback{"f", 0, 1, 1}, {x}, declared);
  b.set_outputs({b.alu(AluOp::Add, {first, second})});
  const Plan plan = partition(b.graph(), {{{2, 4}, {4, 4}}});
  ASSERT_EQ(plan.passes.size(), 2u);
  const Pass& call = plan.passes[0];
  ASSERT_TRUE(call.call);
  EXPECT_EQ(call.call->results, (Ints{0, 1}));
  EXPECT_TRUE(call.programs.empty());
  ASSERT_EQ(call.operands.size(), 2u);
  EXPECT_EQ(call.operands[1][0].box, (Box{{2, 6}, {0, 8}}));
  EXPECT_GT(plan.passes[1].level, call.level);
}

}  // namespace
}  // namespace rune::partition
