// Kernels of equal structure.
#include "schedule/structure.h"

#include <algorithm>

#include "schedule_testing.h"

namespace rune::schedule {
namespace {

// Which kernel each item launches, in order.
Ints structures_of(const Schedule& schedule) {
  Ints result;
  for (const ScheduleItem& item : schedule.items) result.push_back(item.launch()->kernel);
  return result;
}

Value row(Builder& b, Value x, int64_t i) {
  return b.shrink(x, {{i, i + 1}, {0, 64}});
}

// x @ w + row(i) * row(j), rows of one input, at each step.
graph::Graph steps(const std::vector<std::pair<int64_t, int64_t>>& rows) {
  Builder b;
  const Value w = input(b, {64, 64}), a = input(b, {32, 64});
  Value x = input(b, {64, 64});
  for (const auto& [i, j] : rows) {
    const Value added = b.alu(AluOp::Mul, {row(b, a, i), row(b, a, j)});
    x = b.alu(AluOp::Add, {b.contract(x, w, {{1, 0}}, {}), b.expand(added, {64, 64})});
  }
  graph::Graph graph = b.graph();
  graph.outputs = {x};
  return graph;
}

TEST(Structure, OriginsOfInputsDoNotTellApart) {
  const Schedule schedule =
      schedule_graph(steps({{3, 5}, {9, 11}, {0, 2}, {0, 3}, {5, 3}}), cores());
  const Ints structures = structures_of(schedule);
  EXPECT_EQ(structures, (Ints{0, 0, 0, 1, 2}));
  const std::vector<Ints>& origins = schedule.items[1].launch()->origins;
  EXPECT_EQ(std::count(origins.begin(), origins.end(), (Ints{9, 0})), 1);
  EXPECT_EQ(std::count(origins.begin(), origins.end(), Ints{}), 2);
}

TEST(Structure, ConstantsAndOperationsTellApart) {
  Builder b;
  const Value w = input(b, {64, 64});
  Value x = input(b, {64, 64});
  for (const AluOp op : {AluOp::Add, AluOp::Max})
    for (const double c : {1.0, 2.0, 1.0})
      x = b.alu(op, {b.contract(x, w, {{1, 0}}, {}), scalar_like(b, c, x)});
  const Ints structures = structures_of(schedule_of(b, {x}, cores()));
  EXPECT_EQ(structures, (Ints{0, 1, 0, 2, 3, 2}));
}

TEST(Structure, InputsTellApart) {
  Builder b;
  std::vector<Value> outputs;
  for (const DType dtype : {DType::Float16, DType::Bfloat16, DType::Float32, DType::Float16})
    outputs.push_back(b.alu(AluOp::Isnan, {b.placeholder(dtype, {64})}));
  const Ints structures = structures_of(schedule_of(b, outputs, grid()));
  EXPECT_EQ(structures, (Ints{0, 1, 2, 0}));
}

TEST(Structure, KernelsAreMappedAsEachWouldBeAlone) {
  const graph::Graph graph = steps({{1, 2}, {3, 4}, {8, 9}, {0, 1}, {2, 2}, {4, 4}});
  for (const Capabilities& caps : {cores(), grid()}) {
    const auto map = [&](Schedule schedule) {
      return map_to_machine(analyze_items(std::move(schedule), caps), caps);
    };
    const Schedule formed = fuse_kernels(materialize_outputs(graph), caps);
    const Schedule mapped = map(formed);
    for (size_t i = 0; i < formed.items.size(); ++i) {
      Schedule alone;
      alone.graph = formed.graph;
      alone.kernels = {kernel_at(formed, i)};
      alone.items = {formed.items[i]};
      std::get<Launch>(alone.items[0].operation).kernel = 0;
      alone = map(std::move(alone));
      EXPECT_EQ(kernel_at(alone, 0), kernel_at(mapped, i));
      EXPECT_EQ(alone.analysis[0], mapped.analysis[i]);
    }
  }
}

}  // namespace
}  // namespace rune::schedule
