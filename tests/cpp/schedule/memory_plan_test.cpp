// Lifetimes, the arena of temporaries, and dependencies between items.
#include <set>

#include "base/error.h"
#include "schedule_testing.h"

namespace rune::schedule {
namespace {

// Of the first output of a kernel.
const Allocation& output_of(const Schedule& s, size_t item) {
  return allocation_of(s, kernel_at(s, item).outputs.at(0));
}

// A chain of `length` square matrix products: each is a kernel.
Schedule chain(int64_t n, int length) {
  Builder b;
  const Value w = input(b, {n, n});
  Value x = input(b, {n, n});
  for (int i = 0; i < length; ++i) x = b.contract(x, w, {{1, 0}}, {});
  return schedule_of(b, {x}, cores());
}

TEST(MemoryPlan, ChainNeedsTwoTemporariesAtATime) {
  const Schedule s = chain(32, 6);
  ASSERT_EQ(s.items.size(), 6u);
  const int64_t bytes = 32 * 32 * kFloat;
  EXPECT_EQ(s.arena_bytes, 2 * bytes);
  EXPECT_EQ(s.total_memory_usage, 2 * bytes + 3 * bytes);  // two arguments, one output
  for (size_t i = 0; i < 5; ++i) {
    const Allocation& output = output_of(s, i);
    EXPECT_EQ(output.first, static_cast<int64_t>(i));
    EXPECT_EQ(output.last, static_cast<int64_t>(i) + 1);
    ASSERT_TRUE(output.offset);
    // Every second one lies at the same place.
    if (i >= 1) {
      EXPECT_NE(output.offset, output_of(s, i - 1).offset);
    }
    if (i >= 2) {
      EXPECT_EQ(output.offset, output_of(s, i - 2).offset);
    }
  }
  EXPECT_FALSE(output_of(s, 5).offset);
}

TEST(MemoryPlan, VeryManyTemporariesShareMemory) {
  EXPECT_EQ(chain(8, 1200).arena_bytes, 2 * 8 * 8 * kFloat);
  // Of two sizes; every tenth lives until the end.
  Builder b;
  const Value w = input(b, {8, 8});
  Value x = input(b, {8, 8});
  std::vector<Value> kept;
  for (int i = 0; i < 1200; ++i) {
    x = b.contract(x, w, {{1, 0}}, {});
    if (i % 10 == 0) kept.push_back(b.contract(x, input(b, {8, 32}), {{1, 0}}, {}));
  }
  for (const Value v : kept) x = b.contract(x, b.contract(v, v, {{1, 1}}, {}), {{1, 0}}, {});
  const Schedule s = schedule_of(b, {x}, cores());
  EXPECT_LE(s.arena_bytes, 120 * 8 * 32 * kFloat + 4 * 8 * 8 * kFloat);
}

TEST(MemoryPlan, AValueUsedLateKeepsItsPlace) {
  Builder b;
  const Value w = input(b, {16, 16});
  const Value first = b.contract(input(b, {16, 16}), w, {{1, 0}}, {});
  Value x = first;
  for (int i = 0; i < 3; ++i) x = b.contract(x, w, {{1, 0}}, {});
  const Schedule s = schedule_of(b, {b.contract(x, first, {{1, 0}}, {})}, cores());
  ASSERT_EQ(s.items.size(), 5u);
  EXPECT_EQ(output_of(s, 0).first, 0);
  EXPECT_EQ(output_of(s, 0).last, 4);
  EXPECT_EQ(s.arena_bytes, 3 * 16 * 16 * kFloat);
}

TEST(MemoryPlan, OffsetsAreAlignedToCacheLines) {
  Builder b;
  const Value w = input(b, {5, 5});
  Value x = input(b, {5, 5});
  for (int i = 0; i < 4; ++i) x = b.contract(x, w, {{1, 0}}, {});
  const Schedule s = schedule_of(b, {x}, cores());
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(*output_of(s, i).offset % 64, 0);
  EXPECT_EQ(s.arena_bytes, 2 * 128);  // 100 bytes each
}

TEST(Dependencies, DiamondHasFourEdges) {
  Builder b;
  const Value w = input(b, {32, 32});
  const Value top = b.contract(input(b, {32, 32}), w, {{1, 0}}, {});
  const Value left = b.contract(top, w, {{1, 0}}, {});
  const Value right = b.contract(w, top, {{1, 0}}, {});
  const Schedule s = schedule_of(b, {b.contract(left, right, {{1, 0}}, {})}, cores());
  ASSERT_EQ(s.items.size(), 4u) << print(s);
  std::set<std::pair<int64_t, int64_t>> edges;
  for (const Dependency& d : s.dependencies) {
    edges.insert({d.from, d.to});
    EXPECT_EQ(d.values, std::vector<Value>{output_of(s, d.from).value});
  }
  EXPECT_EQ(edges, (std::set<std::pair<int64_t, int64_t>>{{0, 1}, {0, 2}, {1, 3}, {2, 3}}));
  EXPECT_EQ(s.dependencies.size(), 4u);
  EXPECT_EQ(s.critical_path.size(), 3u);
  EXPECT_EQ(s.estimated_runtime_ns, 3 * s.analysis[0].est_ns);
}

TEST(Dependencies, TwoBuffersBetweenTwoItemsAreOneDependency) {
  Builder b;
  const Value x = input(b, {64, 64});
  const Value sum = b.reduce(ReduceOp::Add, x, {1}), top = b.reduce(ReduceOp::Max, x, {1});
  const Value flat = b.alu(AluOp::Mul, {sum, top});
  const Schedule s = schedule_of(b,
                                 {b.contract(b.permute(sum, {1, 0}), top, {{1, 0}}, {}), sum, top,
                                  b.reduce(ReduceOp::Add, flat, {0})},
                                 cores());
  for (const Dependency& d : s.dependencies) {
    EXPECT_EQ(d.from, 0);
    EXPECT_EQ(d.values.size(), 2u);
  }
  EXPECT_EQ(s.dependencies.size(), s.items.size() - 1);
}

TEST(CriticalPath, TakesTheSlowerBranch) {
  Builder b;
  const Value slow = b.contract(input(b, {256, 256}), input(b, {256, 256}), {{1, 0}}, {});
  const Value fast = b.contract(input(b, {256, 2}), input(b, {2, 256}), {{1, 0}}, {});
  const Schedule s = schedule_of(b, {b.contract(slow, fast, {{1, 0}}, {})}, cores());
  ASSERT_EQ(s.items.size(), 3u);
  const int64_t slow_item = s.analysis[0].est_ns > s.analysis[1].est_ns ? 0 : 1;
  EXPECT_EQ(s.critical_path, (Ints{slow_item, 2}));
  EXPECT_EQ(s.estimated_runtime_ns, s.analysis[slow_item].est_ns + s.analysis[2].est_ns);
}

// A value that some reader finds cheaper to store is read from memory by all of them, also by those
// that come after it in the graph and were looked at first.
TEST(Dependencies, AValueStoredByCostIsWrittenBeforeEveryUse) {
  const graph::Graph graph = graph::parse(R"(graph {
    %0 = placeholder index=0 : i64[1,1]
    %1 = placeholder index=1 : i64[1,1]
    %2 = binop sub %1 %0 : i64[1,1]
    %3 = pad widths=[(2,2),(2,0)] %2 : i64[5,3]
    %4 = binop max %3 %3 : i64[5,3]
    %5 = permute axes=[1,0] %4 : i64[3,5]
    %6 = flip axes=[0,1] %3 : i64[5,3]
    %7 = contiguous %5 : i64[3,5]
    %8 = binop sub %7 %5 : i64[3,5]
    %9 = reshape shape=[3,5] %6 : i64[3,5]
    %10 = binop min %8 %9 : i64[3,5]
    %11 = shrink limits=[(2,3),(4,5)] %5 : i64[1,1]
    %12 = binop max %2 %11 : i64[1,1]
    return %12 %10
  })");
  Capabilities caps = cores();
  caps.operations_per_ns = rates_by_size(5e-5);
  caps.launch_ns = 0;
  EXPECT_GT(schedule_graph(graph, caps).items.size(), 1u);
}

}  // namespace
}  // namespace rune::schedule
