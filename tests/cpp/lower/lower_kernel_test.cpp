// Kernels of one structure are lowered once.
#include "lower/passes/lower_kernel.h"

#include <gtest/gtest.h>

#include <set>

#include "graph/builder.h"
#include "graph/passes/passes.h"
#include "lower/text.h"
#include "lower/verify.h"
#include "schedule/analysis/analysis.h"
#include "schedule/analysis/dependencies.h"
#include "schedule/fusion/fuse_kernels.h"
#include "schedule/mapping/mapping.h"
#include "schedule/memory/memory_plan.h"
#include "schedule/structure.h"

namespace rune::lower {
namespace {

using graph::Value;

Capabilities cores() {
  Capabilities caps;
  caps.name = "test-cores";
  caps.num_cores = 2;
  caps.vector_bits = 512;
  caps.num_vector_registers = 32;
  caps.dtypes.set();
  return caps;
}

// x @ w + row(i), a row of another input, at each step.
schedule::Schedule steps(const std::vector<int64_t>& rows) {
  graph::Builder b;
  const Value w = b.placeholder(DType::Float32, {64, 64});
  const Value a = b.placeholder(DType::Float32, {32, 64});
  Value x = b.placeholder(DType::Float32, {64, 64});
  for (const int64_t i : rows) {
    const Value row = b.shrink(a, {{i, i + 1}, {0, 64}});
    x = b.contiguous(b.alu(AluOp::Add, {b.contract(x, w, {{1, 0}}, {}), b.expand(row, {64, 64})}));
  }
  graph::Graph graph = b.graph();
  graph.outputs = {x};
  schedule::Schedule schedule = schedule::fuse_kernels(graph::materialize_outputs(graph), cores());
  return schedule::map_to_machine(schedule::analyze_items(std::move(schedule), cores()), cores());
}

std::vector<Kernel> each_alone(const schedule::Schedule& schedule) {
  std::vector<Kernel> kernels;
  for (const schedule::ScheduleItem& item : schedule.items) {
    auto launch = *item.launch();
    schedule::Schedule alone;
    alone.graph = schedule.graph;
    alone.kernels = {schedule::instantiate(schedule.kernels[launch.kernel], launch)};
    launch.kernel = 0;
    alone.items = {{launch}};
    kernels.push_back(lower_schedule(alone, cores()).at(0));
    kernels.back().name = schedule.launch_name(kernels.size() - 1);
  }
  return kernels;
}

std::string texts(const std::vector<Kernel>& kernels) {
  std::string all;
  for (const Kernel& kernel : kernels) all += print(kernel);
  return all;
}

size_t count_bodies(const std::vector<Kernel>& kernels) {
  std::set<const void*> bodies;
  for (const Kernel& kernel : kernels) bodies.insert(kernel.body.identity());
  return bodies.size();
}

TEST(LowerKernel, EqualKernelsShareWhatEachWouldBeAlone) {
  const schedule::Schedule schedule = steps({3, 3, 3, 3});
  const std::vector<Kernel> kernels = lower_schedule(schedule, cores());
  const std::vector<Kernel> alone = each_alone(schedule);
  ASSERT_EQ(kernels.size(), 4u);
  EXPECT_EQ(count_bodies(kernels), 1u);
  EXPECT_EQ(count_bodies(alone), 4u);
  EXPECT_EQ(texts(kernels), texts(alone));
}

TEST(LowerKernel, RowsOfInputsAreArguments) {
  const std::vector<Kernel> kernels = lower_schedule(steps({3, 7, 0}), cores());
  ASSERT_EQ(kernels.size(), 3u);
  EXPECT_EQ(count_bodies(kernels), 1u);
  EXPECT_EQ(kernels[0].arguments, Ints{0});
  EXPECT_EQ(kernels[1].arguments, Ints{4});
  EXPECT_EQ(kernels[2].arguments, Ints{-3});
  EXPECT_EQ(verify(kernels[0]), std::vector<std::string>{});
  EXPECT_NE(print(kernels[0]).find("launch.0"), std::string::npos);
}

TEST(LowerKernel, AChangedCopyNoLongerShares) {
  const std::vector<Kernel> kernels = lower_schedule(steps({3, 3}), cores());
  Kernel copy = kernels[0];
  EXPECT_EQ(copy.body.identity(), kernels[1].body.identity());
  copy.body.push_back({Barrier{}, {}, {}});
  EXPECT_NE(copy.body.identity(), kernels[1].body.identity());
  EXPECT_EQ(copy.body.size(), kernels[1].body.size() + 1);
}

}  // namespace
}  // namespace rune::lower
