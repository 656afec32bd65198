// Kernels of equal structure.
#include "schedule/structure.h"

#include <cmath>

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

TEST(Structure, OffsetsOfInputsAreArguments) {
  const Schedule schedule =
      schedule_graph(steps({{3, 5}, {9, 11}, {0, 2}, {0, 3}, {5, 3}}), cores());
  EXPECT_EQ(structures_of(schedule), (Ints{0, 0, 0, 1, 2}));
  const Kernel& kernel = schedule.kernels[0];
  ASSERT_EQ(kernel.shifts.size(), 1u);
  EXPECT_EQ(kernel.shifts[0].scale, 3 * 64);  // from row 3 on by 6 and -3 rows
  ASSERT_EQ(kernel.arguments.size(), 1u);
  EXPECT_EQ(kernel.arguments[0], (SymVar{"launch.0", -1, 2}));
  EXPECT_EQ(schedule.items[0].launch()->arguments, Ints{0});
  EXPECT_EQ(schedule.items[1].launch()->arguments, Ints{2});
  EXPECT_EQ(schedule.items[2].launch()->arguments, Ints{-1});
  EXPECT_TRUE(schedule.kernels[1].arguments.empty());
}

// x @ w, combined with a constant, at each step.
Schedule with_constants(DType dtype, AluOp op, const std::vector<double>& constants) {
  Builder b;
  const Value w = b.placeholder(dtype, {64, 64});
  Value x = b.placeholder(dtype, {64, 64});
  for (const double c : constants) {
    const Value scalar = b.constant(Scalar::of(dtype, c));
    const Value spread = b.expand(b.reshape(scalar, {1, 1}), {64, 64});
    x = b.alu(op, {b.contract(x, w, {{1, 0}}, {}), spread});
  }
  return schedule_of(b, {x}, cores());
}

TEST(Structure, ConstantsAreArguments) {
  const Schedule schedule = with_constants(DType::Float32, AluOp::Mul, {1.5, 2.5, 1.5});
  EXPECT_EQ(structures_of(schedule), (Ints{0, 0, 0}));
  EXPECT_EQ(schedule.kernels[0].constants.size(), 1u);
  const auto bits = [](float value) {
    return static_cast<int64_t>(Scalar::of(DType::Float32, value).bits());
  };
  EXPECT_EQ(schedule.items[0].launch()->arguments, Ints{bits(1.5f)});
  EXPECT_EQ(schedule.items[1].launch()->arguments, Ints{bits(2.5f)});
  EXPECT_EQ(schedule.items[2].launch()->arguments, Ints{bits(1.5f)});
}

TEST(Structure, ConstantsThatMakeOperationsCheaperTellApart) {
  EXPECT_EQ(structures_of(with_constants(DType::Int32, AluOp::Add, {5, 7, 5})), (Ints{0, 0, 0}));
  EXPECT_EQ(structures_of(with_constants(DType::Int32, AluOp::Mul, {5, 7, 5})), (Ints{0, 1, 0}));
  EXPECT_EQ(structures_of(with_constants(DType::Int32, AluOp::Idiv, {5, 7, 5})), (Ints{0, 1, 0}));
  EXPECT_EQ(structures_of(with_constants(DType::Float32, AluOp::Pow, {2.5, 3.5})), (Ints{0, 1}));
}

TEST(Structure, OperationsTellApart) {
  Builder b;
  const Value w = input(b, {64, 64});
  Value x = input(b, {64, 64});
  for (const AluOp op : {AluOp::Add, AluOp::Max, AluOp::Add})
    x = b.alu(op, {b.contract(x, w, {{1, 0}}, {}), w});
  EXPECT_EQ(structures_of(schedule_of(b, {x}, cores())), (Ints{0, 1, 0}));
}

// Of integers that are no multiples of each other, a kernel takes four.
TEST(Structure, MoreArgumentsThanAKernelTakesMakeSeveralKernels) {
  Builder b;
  const Value w = b.placeholder(DType::Int32, {64, 64});
  Value x = b.placeholder(DType::Int32, {64, 64});
  for (const int64_t step : {1, 2, 3}) {
    x = b.contract(x, w, {{1, 0}}, {});
    for (const int64_t power : {1, 2, 3, 4, 5, 6}) {
      const auto value = static_cast<int64_t>(std::pow(10 * power + step, 2));
      const Value spread =
          b.expand(b.reshape(b.constant(Scalar::of(DType::Int32, value)), {1, 1}), {64, 64});
      x = b.alu(power % 2 ? AluOp::Add : AluOp::Xor, {x, spread});
    }
  }
  EXPECT_EQ(structures_of(schedule_of(b, {x}, cores())), (Ints{0, 1, 2}));
}

// A concatenation's operands are stored by a kernel each: equal ones at an offset that is an
// argument.
TEST(Structure, OffsetsOfPartsAreArguments) {
  Builder b;
  std::vector<Value> parts;
  const Value x = input(b, {40, 8});
  for (int64_t i = 0; i < 40; ++i)
    parts.push_back(b.alu(i < 39 ? AluOp::Sin : AluOp::Sqrt, {b.shrink(x, {{i, i + 1}, {0, 8}})}));
  const Schedule schedule = schedule_of(b, {b.cat(parts, 0)}, cores());
  ASSERT_EQ(schedule.items.size(), 40u);
  EXPECT_EQ(schedule.kernels.size(), 2u);
  EXPECT_EQ(schedule.kernels[0].arguments.size(), 1u);
  EXPECT_EQ(schedule.kernels[0].shifts.size(), 2u);
  for (size_t i = 0; i < 40; ++i)
    EXPECT_EQ(kernel_at(schedule, i).stages().back().values[0].offset, 8 * static_cast<int64_t>(i));
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
      std::get<Launch>(alone.items[0].operation).arguments = {};
      alone = map(std::move(alone));
      EXPECT_EQ(kernel_at(alone, 0), kernel_at(mapped, i));
      EXPECT_EQ(alone.analysis[0], mapped.analysis[i]);
    }
  }
}

}  // namespace
}  // namespace rune::schedule
