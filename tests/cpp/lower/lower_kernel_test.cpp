// Each kernel of a schedule is lowered once.
#include "lower/passes/lower_kernel.h"

#include <gtest/gtest.h>

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
    schedule::Schedule alone;
    alone.graph = schedule.graph;
    alone.kernels = {schedule::instantiate(schedule.kernel_of(item)[0], *item.launch())};
    kernels.push_back(lower_schedule(alone, cores()).at(0));
  }
  return kernels;
}

std::string texts(const std::vector<Kernel>& kernels) {
  std::string all;
  for (const Kernel& kernel : kernels) all += print(kernel);
  return all;
}

TEST(LowerKernel, EqualKernelsAreLoweredOnceToWhatEachWouldBeAlone) {
  const schedule::Schedule schedule = steps({3, 3, 3, 3});
  const std::vector<Kernel> kernels = lower_schedule(schedule, cores());
  ASSERT_EQ(kernels.size(), 1u);
  for (const Kernel& alone : each_alone(schedule)) EXPECT_EQ(texts({alone}), texts(kernels));
}

TEST(LowerKernel, RowsOfInputsAreArguments) {
  const std::vector<Kernel> kernels = lower_schedule(steps({3, 7, 0}), cores());
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(verify(kernels[0]), std::vector<std::string>{});
  EXPECT_NE(print(kernels[0]).find("launch.0"), std::string::npos);
}

}  // namespace
}  // namespace rune::lower
