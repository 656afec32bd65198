// Axes and where they run.
#include <algorithm>
#include <optional>

#include "schedule/mapping/matrix_tiles.h"
#include "schedule_testing.h"

namespace rune::schedule {
namespace {

class Map : public testing::Test {
 protected:
  Kernel on_cores(std::vector<Value> outputs) {
    schedule = schedule_of(b, std::move(outputs), cores());
    return kernel_at(schedule, 0);
  }
  Kernel on_grid(std::vector<Value> outputs) {
    schedule = schedule_of(b, std::move(outputs), grid());
    return kernel_at(schedule, 0);
  }
  Builder b;
  Schedule schedule;
};

// Axes.

TEST_F(Map, ContiguousElementwiseOperationHasOneAxis) {
  const Value x = input(b, {4, 5, 6}), y = input(b, {4, 5, 6});
  EXPECT_EQ(axis_sizes(on_cores({b.alu(AluOp::Add, {x, y})})), Ints{120});
}

TEST_F(Map, BroadcastKeepsTheAxesItNeeds) {
  const Value x = input(b, {4, 5, 6}), y = b.expand(input(b, {4, 1, 1}), {4, 5, 6});
  EXPECT_EQ(axis_sizes(on_cores({b.alu(AluOp::Add, {x, y})})), (Ints{4, 30}));
}

TEST_F(Map, RowBroadcastCollapsesTheLeadingAxes) {
  const Value x = input(b, {4, 5, 6}), y = b.expand(input(b, {1, 1, 6}), {4, 5, 6});
  EXPECT_EQ(axis_sizes(on_cores({b.alu(AluOp::Add, {x, y})})), (Ints{20, 6}));
}

TEST_F(Map, AxesOfSizeOneVanish) {
  const Value x = input(b, {1, 7, 1});
  EXPECT_EQ(axis_sizes(on_cores({b.alu(AluOp::Sin, {x})})), Ints{7});
}

TEST_F(Map, ReshapeBetweenOperationsCostsNoAxis) {
  const Value x = b.alu(AluOp::Sin, {input(b, {6, 4})});
  EXPECT_EQ(axis_sizes(on_cores({b.alu(AluOp::Exp, {b.reshape(x, {3, 8})})})), Ints{24});
}

TEST_F(Map, ReductionOverAdjacentAxesHasOneInnerAxis) {
  const Kernel k = on_cores({b.reduce(ReduceOp::Max, input(b, {4, 5, 6}), {1, 2})});
  EXPECT_EQ(axis_sizes(k), (Ints{4, 30}));
  EXPECT_EQ(reduced_axes(k), Ints{1});
  EXPECT_EQ(k.stages()[0].axes, Ints{1});
}

// Vectors.

TEST_F(Map, LanesRunAlongTheUnitStride) {
  const Kernel k = on_cores({b.alu(AluOp::Sin, {input(b, {1000})})});
  EXPECT_EQ(k.iter.mapping.vec, Ints{0});
  EXPECT_EQ(k.lanes(), 16);
  EXPECT_EQ(k.iter.tiles[0].back(), 16 * k.iter.unroll(0));
}

TEST_F(Map, TheWidestElementDecidesTheLanes) {
  const Value x = b.placeholder(DType::Float64, {1000});
  EXPECT_EQ(on_cores({b.cast(b.cast(x, DType::Float32), DType::Int8)}).lanes(), 8);
  Builder narrow;
  const Value y = narrow.placeholder(DType::Int8, {1000});
  EXPECT_EQ(kernel_at(schedule_of(narrow, {narrow.alu(AluOp::Add, {y, y})}, cores()), 0).lanes(),
            64);
}

TEST_F(Map, RareWideValuesTakeSeveralRegisters) {
  const Value x = input(b, {1000});
  Value y = x;
  for (int i = 0; i < 5; ++i) y = b.alu(AluOp::Mul, {y, x});
  EXPECT_EQ(on_cores({b.cast(y, DType::Float64)}).lanes(), 16);
}

TEST_F(Map, ChainsOfDependentOperationsAreInterleaved) {
  const Value x = input(b, {100000});
  Value chain = x;
  for (int i = 0; i < 40; ++i) chain = b.alu(AluOp::Mul, {chain, chain});
  EXPECT_EQ(on_cores({chain}).iter.unroll(0), 4);
}

TEST_F(Map, InterleavedCopiesFitTheRegisters) {
  std::vector<Value> values;
  for (int i = 0; i < 14; ++i) values.push_back(input(b, {100000}));
  Value sum = values[0];
  for (int round = 0; round < 2; ++round)
    for (const Value v : values) sum = b.alu(AluOp::Mul, {sum, v});
  EXPECT_EQ(on_cores({sum}).iter.unroll(0), 2);
}

// The sum of the nine neighbours of each of `rows` rows of 256 points.
Value blur(Builder& b, int64_t rows) {
  const Value x = input(b, {rows + 2, 258});
  std::optional<Value> sum;
  for (int64_t i = 0; i < 3; ++i)
    for (int64_t j = 0; j < 3; ++j) {
      const Value shifted = b.shrink(x, {{i, i + rows}, {j, j + 256}});
      sum = sum ? b.alu(AluOp::Add, {*sum, shifted}) : shifted;
    }
  return *sum;
}

TEST_F(Map, RowsOfAStencilShareTheirLoads) {
  const Kernel k = on_cores({blur(b, 301)});
  EXPECT_EQ(k.iter.mapping.vec, Ints{1});
  EXPECT_EQ(k.iter.unroll(0), 4);
  EXPECT_EQ(k.iter.tiles[0].back(), 4);
  EXPECT_EQ(k.iter.unroll(1), 3);  // vectors of one row, whose stores share lines
}

TEST_F(Map, RowsOfNarrowVectorsAreComputedVectorByVector) {
  Capabilities narrow = cores();
  narrow.vector_bits = 256;
  const Kernel k = kernel_at(schedule_of(b, {blur(b, 301)}, narrow), 0);
  EXPECT_GT(k.iter.unroll(0), 1);
  EXPECT_EQ(k.iter.unroll(1), 1);
}

TEST_F(Map, RowsThatShareLittleStayApart) {
  const Value x = input(b, {301, 257});
  const auto at = [&](int64_t i, int64_t j) { return b.shrink(x, {{i, i + 300}, {j, j + 256}}); };
  const Value down = b.alu(AluOp::Sub, {at(1, 0), at(0, 0)});
  EXPECT_EQ(on_cores({b.alu(AluOp::Sub, {down, at(0, 1)})}).iter.unroll(0), 1);
}

TEST_F(Map, FewRowsStayApart) {
  EXPECT_EQ(on_cores({blur(b, 7)}).iter.unroll(0), 2);
  Builder fewer;
  EXPECT_EQ(kernel_at(schedule_of(fewer, {blur(fewer, 3)}, cores()), 0).iter.unroll(0), 1);
}

TEST_F(Map, RowReductionRunsLanesAlongTheRow) {
  const Kernel k = on_cores({b.reduce(ReduceOp::Add, input(b, {300, 400}), {1})});
  EXPECT_EQ(k.iter.mapping.vec, Ints{1});
  EXPECT_GT(k.iter.unroll(1), 1);
  EXPECT_EQ(reduced_axes(k), Ints{1});
  EXPECT_FALSE(k.combination());
}

TEST_F(Map, ColumnReductionRunsLanesAlongTheColumns) {
  const Kernel k = on_cores({b.reduce(ReduceOp::Add, input(b, {300, 400}), {0})});
  EXPECT_EQ(axis_sizes(k), (Ints{400, 300}));
  EXPECT_EQ(k.iter.mapping.vec, Ints{0});
}

TEST_F(Map, TransposedCopyStoresInUnitStride) {
  const Kernel k = on_cores({b.permute(input(b, {64, 32}), {1, 0})});
  EXPECT_EQ(axis_sizes(k), (Ints{32, 64}));
  // Stores count more than loads.
  EXPECT_EQ(k.iter.mapping.vec, Ints{1});
}

TEST_F(Map, SoftmaxRunsLanesAlongEveryStage) {
  const Kernel k = on_cores({softmax(b, input(b, {100, 256}), 1)});
  EXPECT_EQ(k.iter.mapping.vec, (Ints{1, 2, 3}));
}

TEST_F(Map, AccumulatorsFillTheRegistersInAMatrixProduct) {
  const Kernel k = on_cores({b.contract(input(b, {128, 64}), input(b, {64, 224}), {{1, 0}}, {})});
  EXPECT_EQ(axis_sizes(k), (Ints{128, 224, 64}));
  EXPECT_TRUE(k.scratch.empty());
  EXPECT_EQ(k.iter.mapping.vec, Ints{1});
  const int64_t accumulators = k.iter.unroll(0) * k.iter.unroll(1);
  EXPECT_GE(accumulators, 16);
  EXPECT_LE(accumulators + k.iter.unroll(1) + 1, 32);
  EXPECT_EQ(k.points_at_once(), accumulators);
  EXPECT_EQ(schedule.analysis[0].accumulators, accumulators);
}

TEST_F(Map, LargeMatrixProductsRunFromScratchThatFitsTheCaches) {
  const Kernel k =
      on_cores({b.contract(input(b, {900, 700}), input(b, {700, 1100}), {{1, 0}}, {})});
  ASSERT_EQ(k.scratch.size(), 2u);
  const Ints& rows = k.iter.tiles[0];
  const Ints& columns = k.iter.tiles[1];
  // The block of rows and one panel of columns.
  EXPECT_LE((rows[1] + columns[1]) * 700 * 4, cores().l2_bytes);
  EXPECT_EQ(rows.back() * columns.back(), k.points_at_once() * k.lanes());
  EXPECT_GE(k.workgroups(), cores().num_cores);
}

// Cores.

TEST_F(Map, SmallKernelsStayOnOneCore) {
  const Kernel k = on_cores({b.alu(AluOp::Add, {input(b, {1000}), input(b, {1000})})});
  EXPECT_TRUE(k.iter.mapping.block.empty());
  EXPECT_EQ(k.workgroups(), 1);
  EXPECT_EQ(schedule.analysis[0].occupancy, 0.5);
}

TEST_F(Map, LargeKernelsUseAllCores) {
  const int64_t n = 1 << 22;
  const Kernel k = on_cores({b.alu(AluOp::Sin, {input(b, {n})})});
  EXPECT_EQ(k.iter.mapping.block, Ints{0});
  EXPECT_GE(k.workgroups(), 2);
  EXPECT_LE(k.workgroups(), 16);
  EXPECT_EQ(k.iter.tiles[0].size(), 2u);
  EXPECT_GE(k.iter.tiles[0][0] * k.workgroups(), n);
  EXPECT_EQ(schedule.analysis[0].occupancy, 1);
}

TEST_F(Map, OutputsLargerThanTheCachesBypassThem) {
  const Kernel k = on_cores({b.alu(AluOp::Neg, {input(b, {8 << 20})})});
  EXPECT_EQ(k.nontemporal, k.outputs);
  Builder small;
  const Schedule s =
      schedule_of(small, {small.alu(AluOp::Neg, {input(small, {1 << 20})})}, cores());
  EXPECT_TRUE(kernel_at(s, 0).nontemporal.empty());
}

TEST_F(Map, LongSumsAreBlocked) {
  const Kernel k = on_cores({b.reduce(ReduceOp::Add, input(b, {4, 1 << 17}), {1})});
  ASSERT_EQ(k.iter.tiles[1].size(), 2u);
  EXPECT_EQ(k.iter.tiles[1][0], 64 * k.iter.tiles[1][1]);
  Builder other;
  const Schedule s =
      schedule_of(other, {other.reduce(ReduceOp::Max, input(other, {4, 1 << 17}), {1})}, cores());
  EXPECT_EQ(kernel_at(s, 0).iter.tiles[1].size(), 1u) << "a maximum has no rounding error";
}

// Grids.

TEST_F(Map, ElementwiseOperationsHaveAThreadAPoint) {
  const Kernel k = on_grid({b.alu(AluOp::Sin, {input(b, {1000})})});
  EXPECT_EQ(k.iter.mapping.block, Ints{0});
  EXPECT_EQ(k.iter.mapping.thread, Ints{0});
  EXPECT_EQ(k.iter.mapping.threads, 256);
  EXPECT_EQ(k.workgroups(), 4);
  EXPECT_TRUE(k.iter.mapping.vec.empty());
}

TEST_F(Map, FewPointsHaveFewThreads) {
  const Kernel k = on_grid({b.alu(AluOp::Sin, {input(b, {40})})});
  EXPECT_EQ(k.iter.mapping.threads, 64);
}

TEST_F(Map, RowReductionHasAGroupARow) {
  const Kernel k = on_grid({b.reduce(ReduceOp::Add, input(b, {300, 400}), {1})});
  EXPECT_EQ(k.iter.mapping.block, Ints{0});
  EXPECT_EQ(k.iter.mapping.thread, Ints{1});
  EXPECT_EQ(k.workgroups(), 300);
  EXPECT_EQ(k.iter.mapping.threads, 256);
  ASSERT_TRUE(k.combination());
  EXPECT_EQ(k.combination()->threads, ThreadCombination::SharedTree);
}

TEST_F(Map, ShortReductionsStayWithinAThread) {
  const Kernel k = on_grid({b.reduce(ReduceOp::Add, input(b, {300, 10}), {1})});
  EXPECT_EQ(k.iter.mapping.thread, Ints{0});
  EXPECT_EQ(k.iter.mapping.serial, Ints{1});
  EXPECT_FALSE(k.combination());
}

TEST_F(Map, AShortReductionToOneNumberHasOneThread) {
  const Kernel k = on_grid({b.reduce(ReduceOp::Add, input(b, {10}), {0})});
  EXPECT_EQ(k.iter.mapping.threads, 1);
  EXPECT_EQ(k.workgroups(), 1);
}

TEST_F(Map, SoftmaxSharesEveryStageAmongTheThreads) {
  const Kernel k = on_grid({softmax(b, input(b, {100, 128}), 1)});
  EXPECT_EQ(k.iter.mapping.thread, (Ints{1, 2, 3}));
  EXPECT_EQ(k.iter.mapping.threads, 128);
}

// Of panels of a matrix product on a device with so much shared memory: their depth and how many
// copies there are.
TEST_F(Map, SharedMemoryDecidesThePanels) {
  const auto panels = [](int64_t bytes) {
    Builder b;
    Capabilities caps = grid();
    caps.shared_memory_bytes = bytes;
    const Value x = input(b, {1024, 256}), y = input(b, {256, 1024});
    const Schedule s = schedule_of(b, {b.contract(x, y, {{1, 0}}, {})}, caps);
    const Kernel k = kernel_at(s, 0);
    if (!k.matrix()) return Ints{};
    EXPECT_LE(panel_bytes(*k.matrix()), bytes);
    return Ints{k.matrix()->depth, k.matrix()->copies};
  };
  EXPECT_EQ(panels(48 << 10), (Ints{16, 2}));
  EXPECT_EQ(panels(32 << 10), (Ints{8, 2}));
  EXPECT_EQ(panels(16 << 10), (Ints{8, 1}));
  EXPECT_EQ(panels(8 << 10), Ints{});
}

TEST_F(Map, LongReductionsAreSplitOverTheGrid) {
  const Kernel k = on_grid({b.reduce(ReduceOp::Add, input(b, {1 << 20}), {0})});
  EXPECT_EQ(schedule.items.size(), 2u);
  EXPECT_EQ(k.workgroups(), 64);
  EXPECT_EQ(kernel_at(schedule, 1).workgroups(), 1);
}

// Splitting.

class Split : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Sizes, Split, testing::Values(1 << 20, (1 << 20) + 1, 1000003, 3 << 18));

TEST_P(Split, PartsCoverEveryElement) {
  const int64_t n = GetParam();
  Builder b;
  const Schedule s = schedule_of(b, {b.reduce(ReduceOp::Add, input(b, {n}), {0})}, cores());
  EXPECT_LE(s.items.size(), 3u) << print(s);
  EXPECT_GE(bytes_read(s), 4 * n);
  EXPECT_LE(bytes_read(s), 4 * n + 4096);
  EXPECT_EQ(s.analysis[0].occupancy, 1) << print(s);
}

TEST(SplitReductions, ShortOrManyResultsStayWhole) {
  for (const Shape& shape : {Shape{1000}, Shape{1 << 10, 1 << 10}}) {
    Builder b;
    b.set_outputs(
        {b.reduce(ReduceOp::Add, input(b, shape), {static_cast<int64_t>(shape.size()) - 1})});
    EXPECT_TRUE(graph::equal(split_reductions(b.graph(), cores()), b.graph()));
  }
}

}  // namespace
}  // namespace rune::schedule
