// Which values share a kernel, and what that costs in bytes.
#include <algorithm>

#include "base/error.h"
#include "schedule/analysis/accesses.h"
#include "schedule_testing.h"

namespace rune::schedule {
namespace {

// Every schedule of this graph must have `kernels` items and move these bytes.
void expect_cost(const Schedule& schedule, size_t kernels, int64_t read, int64_t written) {
  EXPECT_EQ(schedule.items.size(), kernels) << print(schedule);
  EXPECT_EQ(bytes_read(schedule), read) << print(schedule);
  EXPECT_EQ(bytes_written(schedule), written) << print(schedule);
}

class Fuse : public testing::TestWithParam<const char*> {
 protected:
  Capabilities caps() const { return std::string(GetParam()) == "cores" ? cores() : grid(); }
  Schedule run(std::vector<Value> outputs) { return schedule_of(b, std::move(outputs), caps()); }
  Builder b;
};
INSTANTIATE_TEST_SUITE_P(Models, Fuse, testing::Values("cores", "grid"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(Fuse, ChainOfElementwiseOperationsIsOneKernel) {
  const Value x = input(b, {1000});
  Value y = x;
  for (int i = 0; i < 8; ++i) y = b.alu(i % 2 ? AluOp::Mul : AluOp::Add, {y, x});
  const Schedule s = run({y});
  expect_cost(s, 1, 1000 * kFloat, 1000 * kFloat);
  EXPECT_EQ(s.analysis[0].flops, 8000);
  EXPECT_EQ(kernel_at(s, 0).ops.size(), 8u);
  EXPECT_EQ(stage_kinds(kernel_at(s, 0)), std::vector{StageKind::Map});
}

TEST_P(Fuse, SoftmaxOverRowsIsOneKernel) {
  const Schedule s = run({softmax(b, input(b, {512, 256}), 1)});
  expect_cost(s, 1, 512 * 256 * kFloat, 512 * 256 * kFloat);
  EXPECT_EQ(stage_kinds(kernel_at(s, 0)),
            (std::vector{StageKind::Reduce, StageKind::Reduce, StageKind::Map}));
  EXPECT_EQ(axis_sizes(kernel_at(s, 0)), (Ints{512, 256, 256, 256}));
}

TEST_P(Fuse, SoftmaxOverColumnsIsOneKernel) {
  Capabilities few = caps();  // a thread for each column keeps them busy
  few.num_cores = 1;
  expect_cost(schedule_of(b, {softmax(b, input(b, {128, 512}), 0)}, few), 1, 128 * 512 * kFloat,
              128 * 512 * kFloat);
}

TEST_P(Fuse, SoftmaxOverRowsOfABatchCollapsesTheBatch) {
  const Schedule s = run({softmax(b, input(b, {8, 16, 64}), 2)});
  expect_cost(s, 1, 8 * 16 * 64 * kFloat, 8 * 16 * 64 * kFloat);
  EXPECT_EQ(axis_sizes(kernel_at(s, 0)), (Ints{8 * 16, 64, 64, 64}));
}

TEST_P(Fuse, LayernormIsOneKernel) {
  const Schedule s = run({layernorm(b, input(b, {256, 768}))});
  expect_cost(s, 1, 256 * 768 * kFloat, 256 * 768 * kFloat);
  EXPECT_EQ(stage_kinds(kernel_at(s, 0)),
            (std::vector{StageKind::Reduce, StageKind::Reduce, StageKind::Map}));
}

TEST_P(Fuse, LayernormWithScaleAndShiftIsOneKernel) {
  const Value y = layernorm(b, input(b, {256, 768}));
  const Value scale = b.expand(b.reshape(input(b, {768}), {1, 768}), {256, 768});
  const Value shift = b.expand(b.reshape(input(b, {768}), {1, 768}), {256, 768});
  const Schedule s = run({b.alu(AluOp::Add, {b.alu(AluOp::Mul, {y, scale}), shift})});
  expect_cost(s, 1, (256 * 768 + 2 * 768) * kFloat, 256 * 768 * kFloat);
}

TEST_P(Fuse, LogSumExpIsOneKernel) {
  const Value x = input(b, {300, 200});
  const Value top = b.reduce(ReduceOp::Max, x, {1});
  const Value e = b.alu(AluOp::Exp, {b.alu(AluOp::Sub, {x, b.expand(top, {300, 200})})});
  const Value y = b.alu(AluOp::Add, {b.alu(AluOp::Log, {b.reduce(ReduceOp::Add, e, {1})}), top});
  const Schedule s = run({b.reshape(y, {300})});
  expect_cost(s, 1, 300 * 200 * kFloat, 300 * kFloat);
}

TEST_P(Fuse, MeanAndVarianceTogetherAreOneKernel) {
  const Value x = input(b, {128, 100});
  const Value m = mean(b, x, {1});
  const Value centred = b.alu(AluOp::Sub, {x, b.expand(m, {128, 100})});
  const Value v = mean(b, b.alu(AluOp::Mul, {centred, centred}), {1});
  expect_cost(run({m, v}), 1, 128 * 100 * kFloat, 2 * 128 * kFloat);
}

TEST_P(Fuse, ReductionsOfTheSameRowsShareAStage) {
  const Value x = input(b, {128, 100});
  const Schedule s = run({b.reduce(ReduceOp::Add, x, {1}), b.reduce(ReduceOp::Max, x, {1})});
  expect_cost(s, 1, 128 * 100 * kFloat, 2 * 128 * kFloat);
  EXPECT_EQ(stage_kinds(kernel_at(s, 0)), (std::vector{StageKind::Reduce, StageKind::Map}));
  EXPECT_EQ(kernel_at(s, 0).stages()[0].values.size(), 2u);
}

TEST_P(Fuse, BlurByShiftedSlicesIsOneKernel) {
  const Value x = input(b, {34, 66});
  Value sum;
  for (int64_t i = 0; i < 3; ++i)
    for (int64_t j = 0; j < 3; ++j) {
      const Value part = b.shrink(x, {{i, i + 32}, {j, j + 64}});
      sum = sum.valid() ? b.alu(AluOp::Add, {sum, part}) : part;
    }
  const Schedule s = run({b.alu(AluOp::Mul, {sum, scalar_like(b, 1.0 / 9, sum)})});
  expect_cost(s, 1, 34 * 66 * kFloat, 32 * 64 * kFloat);
  EXPECT_EQ(axis_sizes(kernel_at(s, 0)), (Ints{32, 64}));
}

// How many nodes a kernel computes, each once for each of its demands.
size_t length(const Schedule& s, const Kernel& kernel) {
  size_t result = 0;
  const std::vector<sym::Expr> axes = axis_variables(kernel.iter);
  for (const Stage& stage : kernel.stages())
    walk(s.graph, stage_seeds(s.graph, stage, axes),
         [&](Value v, const std::vector<Demand>& demands) {
           const auto& inputs = kernel.inputs;
           if (std::find(inputs.begin(), inputs.end(), v) != inputs.end()) return true;
           result += demands.size();
           return false;
         });
  return result;
}

// Each step needs three elements of the one before it, of which the masks on all ways to it differ.
TEST_P(Fuse, ChainOfStepsThatNeedFewElementsIsSeveralShortKernels) {
  const auto counter = [&](int id) {
    const SymVar var{"i" + std::to_string(id), 0, 8};
    b.add(graph::Define_Var{var}, {});
    return Dim(var);
  };
  const Dim p = counter(1), q = counter(2), r = counter(3);
  const auto element = [&](Value x, const Dim& row, const Dim& column) {
    return b.shrink(x, {{row, row + 1}, {column, column + 1}});
  };
  const auto around = [&](Value element) {
    return b.pad(element, {{p, Dim(8) - p}, {q, Dim(8) - q}});
  };
  const Value given = input(b, {40}), factor = b.full(Scalar::of(DType::Float32, 2), {8, 9});
  const Value one = b.full(Scalar::of(DType::Bool, 1), {1, 1});
  const Value below = b.pad(b.full(Scalar::of(DType::Bool, 1), {8, 9}), {{1, 0}, {0, 0}});
  Value x = input(b, {9, 9});
  for (int64_t k = 0; k < 40; ++k) {
    const Value next = b.reshape(b.slice(given, 0, k, k + 1), {1, 1});
    const Value sum = b.alu(AluOp::Add, {element(x, p, q), next});
    x = b.alu(AluOp::Where, {around(one), around(sum), x});
    const Value rows = b.slice(x, 0, 1, 9), above = b.slice(x, 0, 0, 8);
    const Value is_less = b.alu(AluOp::Cmplt, {element(x, 0, r), next});
    const Value changed = b.alu(AluOp::Sub, {rows, b.alu(AluOp::Mul, {above, factor})});
    const Value chosen = b.alu(AluOp::Where, {b.expand(is_less, {8, 9}), changed, rows});
    x = b.alu(AluOp::Where, {below, b.pad(chosen, {{1, 0}, {0, 0}}), x});
  }
  const Schedule s = run({element(x, 6, 4)});
  EXPECT_GT(s.items.size(), 1u);
  EXPECT_LE(s.items.size(), 40u);
  for (const Kernel& kernel : s.kernels) EXPECT_LE(length(s, kernel), 4096u);
}

Value dense(Builder& b, Value x, int64_t from, int64_t to) {
  const Value y = b.contract(x, input(b, {from, to}), {{1, 0}}, {});
  const Value bias = b.expand(b.reshape(input(b, {to}), {1, to}), b.shape(y));
  const Value z = b.alu(AluOp::Add, {y, bias});
  return b.alu(AluOp::Max, {z, scalar_like(b, 0, z)});
}

TEST_P(Fuse, MatrixProductTakesBiasAndReluAlong) {
  const Schedule s = run({dense(b, input(b, {128, 64}), 64, 96)});
  expect_cost(s, 1, (128 * 64 + 64 * 96 + 96) * kFloat, 128 * 96 * kFloat);
  EXPECT_EQ(stage_kinds(kernel_at(s, 0)), (std::vector{StageKind::Reduce, StageKind::Map}));
  EXPECT_EQ(axis_sizes(kernel_at(s, 0)), (Ints{128, 96, 64}));
  // A multiply-add counts two; bias and relu one each.
  EXPECT_EQ(s.analysis[0].flops, 2 * 128 * 96 * 64 + 2 * 128 * 96);
}

TEST_P(Fuse, PerceptronOfTwoLayersIsTwoKernels) {
  const Value hidden = dense(b, input(b, {128, 64}), 64, 96);
  const Schedule s = run({dense(b, hidden, 96, 10)});
  const int64_t read = (128 * 64 + 64 * 96 + 96) + (128 * 96 + 96 * 10 + 10);
  expect_cost(s, 2, read * kFloat, (128 * 96 + 128 * 10) * kFloat);
  ASSERT_EQ(s.dependencies.size(), 1u);
  EXPECT_EQ(s.dependencies[0].from, 0);
  EXPECT_EQ(s.dependencies[0].to, 1);
  EXPECT_EQ(s.critical_path, (Ints{0, 1}));
  EXPECT_EQ(s.estimated_runtime_ns, s.analysis[0].est_ns + s.analysis[1].est_ns);
  EXPECT_EQ(s.arena_bytes, 128 * 96 * kFloat);
}

TEST_P(Fuse, SumOverTheFirstAxisIsOneKernel) {
  // So many columns that they keep the device busy.
  const int64_t columns = caps().model == ExecutionModel::Cores ? 3000 : 300000;
  const Value x = input(b, {100, columns});
  const Schedule s = run({b.reshape(b.reduce(ReduceOp::Add, x, {0}), {columns})});
  expect_cost(s, 1, 100 * columns * kFloat, columns * kFloat);
  EXPECT_EQ(axis_sizes(kernel_at(s, 0)), (Ints{columns, 100}));
  EXPECT_EQ(s.analysis[0].flops, 100 * columns);
}

TEST_P(Fuse, SmallCentringIsOneKernel) {
  const Value x = input(b, {1000});
  const Schedule s = run({b.alu(AluOp::Sub, {x, b.expand(mean(b, x, {0}), {1000})})});
  expect_cost(s, 1, 1000 * kFloat, 1000 * kFloat);
}

TEST_P(Fuse, LargeCentringSpreadsTheSum) {
  const int64_t n = 1 << 22;
  const Value x = input(b, {n});
  const Schedule s = run({b.alu(AluOp::Sub, {x, b.expand(mean(b, x, {0}), {n})})});
  // Partial sums; their sum; the difference, which may take the sum of the few parts along.
  EXPECT_GE(s.items.size(), 2u);
  EXPECT_LE(s.items.size(), 3u) << print(s);
  EXPECT_GE(bytes_read(s), 2 * n * kFloat);
  EXPECT_LE(bytes_read(s), 2 * n * kFloat + 4096);
  EXPECT_LE(bytes_written(s), n * kFloat + 4096);
  EXPECT_GT(kernel_at(s, 0).workgroups(), 1) << print(s);
}

TEST_P(Fuse, OutputsThatShareAnInputAreOneKernel) {
  const Value x = input(b, {64, 64});
  const Schedule s = run({b.alu(AluOp::Sin, {x}), b.alu(AluOp::Cos, {x})});
  expect_cost(s, 1, 64 * 64 * kFloat, 2 * 64 * 64 * kFloat);
  EXPECT_EQ(kernel_at(s, 0).outputs.size(), 2u);
  EXPECT_EQ(axis_sizes(kernel_at(s, 0)), Ints{64 * 64});
}

TEST_P(Fuse, KernelsHaveNoMoreBuffersThanTheDevicePasses) {
  const Value x = input(b, {64});
  std::vector<Value> outputs;
  for (int i = 0; i < 20; ++i) outputs.push_back(b.alu(AluOp::Mul, {x, input(b, {64})}));
  EXPECT_EQ(run(outputs).items.size(), caps().max_buffers < 41 ? 2u : 1u);
}

TEST_P(Fuse, OutputThatIsAlsoUsedIsOneKernel) {
  const Value x = input(b, {100});
  const Value y = b.alu(AluOp::Sin, {x});
  const Schedule s = run({y, b.alu(AluOp::Add, {y, x})});
  expect_cost(s, 1, 100 * kFloat, 2 * 100 * kFloat);
}

TEST_P(Fuse, UnrelatedOutputsAreTwoKernels) {
  const Schedule s =
      run({b.alu(AluOp::Sin, {input(b, {100})}), b.alu(AluOp::Cos, {input(b, {70})})});
  expect_cost(s, 2, 170 * kFloat, 170 * kFloat);
  EXPECT_TRUE(s.dependencies.empty());
  EXPECT_EQ(s.critical_path.size(), 1u);
}

TEST_P(Fuse, TransposedOperandIsReadInPlace) {
  const Value x = input(b, {64, 32}), y = input(b, {32, 64});
  const Schedule s = run({b.alu(AluOp::Add, {x, b.permute(y, {1, 0})})});
  expect_cost(s, 1, 2 * 64 * 32 * kFloat, 64 * 32 * kFloat);
  EXPECT_EQ(axis_sizes(kernel_at(s, 0)), (Ints{64, 32}));
}

TEST_P(Fuse, ConcatenationIsOneKernel) {
  const Value x = input(b, {16, 8}), y = input(b, {24, 8});
  const Value joined = b.cat({b.alu(AluOp::Sin, {x}), y}, 0);
  const Schedule s = run({b.alu(AluOp::Add, {joined, joined})});
  expect_cost(s, 1, 40 * 8 * kFloat, 40 * 8 * kFloat);
}

TEST_P(Fuse, PadIsOneKernel) {
  const Value x = b.alu(AluOp::Sin, {input(b, {10, 20})});
  const Schedule s = run({b.pad(x, {{1, 1}, {2, 3}})});
  expect_cost(s, 1, 10 * 20 * kFloat, 12 * 25 * kFloat);
}

TEST_P(Fuse, FlippedAndReshapedOperandsCostNoKernel) {
  const Value x = input(b, {6, 4});
  const Value y = b.flip(b.reshape(x, {4, 6}), {1});
  expect_cost(run({b.alu(AluOp::Mul, {y, y})}), 1, 24 * kFloat, 24 * kFloat);
}

TEST_P(Fuse, SliceReadsOnlyItsElements) {
  const Value x = input(b, {100, 10});
  const Schedule s = run({b.alu(AluOp::Sin, {b.shrink(x, {{10, 30}, {0, 10}})})});
  expect_cost(s, 1, 20 * 10 * kFloat, 20 * 10 * kFloat);
}

TEST_P(Fuse, ScalarOperandIsReadOnce) {
  const Value x = input(b, {50}), y = input(b, {});
  const Schedule s = run({b.alu(AluOp::Mul, {x, b.expand(b.reshape(y, {1}), {50})})});
  expect_cost(s, 1, 51 * kFloat, 50 * kFloat);
}

TEST_P(Fuse, ZeroDimensionalProgram) {
  const Value x = input(b, {});
  const Schedule s = run({b.alu(AluOp::Sin, {x})});
  expect_cost(s, 1, kFloat, kFloat);
  EXPECT_TRUE(kernel_at(s, 0).iter.axes.empty());
  EXPECT_EQ(kernel_at(s, 0).iter.mapping.threads, 1);
}

TEST_P(Fuse, ExpensiveProducerOfAMatrixProductIsStored) {
  const Value x = input(b, {256, 256}), y = input(b, {256, 256});
  const Value p = b.contract(b.alu(AluOp::Sin, {b.alu(AluOp::Exp, {x})}), y, {{1, 0}}, {});
  const Schedule s = run({p});
  EXPECT_EQ(s.items.size(), 2u) << print(s);
}

TEST_P(Fuse, CheapProducerOfAReductionIsNotStored) {
  const Value x = input(b, {256, 256});
  const Value y = b.alu(AluOp::Mul, {x, x});
  const Schedule s = run({b.reduce(ReduceOp::Add, y, {1})});
  expect_cost(s, 1, 256 * 256 * kFloat, 256 * kFloat);
}

TEST_P(Fuse, OutputsThatAreArgumentsConstantsOrEqualGetBuffers) {
  const Value x = input(b, {10});
  const Value y = b.alu(AluOp::Sin, {x});
  const Schedule s =
      run({x, y, y, b.full(Scalar::of(DType::Float32, 2.0), {10}), b.reshape(y, {5, 2})});
  ASSERT_EQ(s.outputs.size(), 5u);
  for (size_t i = 0; i < 5; ++i)
    for (size_t j = 0; j < i; ++j) EXPECT_NE(s.outputs[i], s.outputs[j]);
  EXPECT_EQ(bytes_written(s), 5 * 10 * kFloat);
}

TEST_P(Fuse, EmptyOutputsNeedNoKernel) {
  const Value x = input(b, {0, 4});
  EXPECT_TRUE(run({b.alu(AluOp::Sin, {x})}).items.empty());
}

TEST_P(Fuse, ReductionOfNothingIsItsIdentity) {
  b.set_outputs({b.reduce(ReduceOp::Add, input(b, {3, 0}), {1})});
  b = Builder(graph::simplify(b.graph()));
  const Schedule s = run(b.graph().outputs);
  expect_cost(s, 1, 0, 3 * kFloat);
  EXPECT_EQ(stage_kinds(kernel_at(s, 0)), std::vector{StageKind::Map});
}

TEST_P(Fuse, ContiguousStoresItsOperand) {
  const Value x = input(b, {40, 50});
  const Value stored = b.contiguous(b.alu(AluOp::Sin, {x}));
  const Schedule s = run({b.alu(AluOp::Cos, {b.permute(stored, {1, 0})})});
  bool has_temporary = false;
  for (const ScheduleItem& item : s.items)
    for (const Value v : accesses_of(item).writes)
      has_temporary |= allocation_of(s, v).offset.has_value();
  // Either a kernel of its own, or none if the store is never read back.
  EXPECT_LE(s.items.size(), 2u);
  EXPECT_EQ(has_temporary, s.items.size() == 2) << print(s);
}

TEST_P(Fuse, DecisionsSayWhatWasTakenAndWhy) {
  const Value x = input(b, {512, 256});
  const Schedule s = run({softmax(b, x, 1)});
  ASSERT_FALSE(s.fusion_opportunities.empty());
  for (const FusionOpportunity& o : s.fusion_opportunities) {
    EXPECT_TRUE(o.taken) << print(s);
    EXPECT_FALSE(o.reason.empty());
    EXPECT_GT(o.benefit_score, 0);
  }
  const Value h = b.contract(x, input(b, {256, 256}), {{1, 0}}, {});
  const Schedule refused = run({b.contract(h, input(b, {256, 256}), {{1, 0}}, {})});
  ASSERT_EQ(refused.fusion_opportunities.size(), 1u);
  EXPECT_FALSE(refused.fusion_opportunities[0].taken);
  EXPECT_TRUE(refused.fusion_opportunities[0].reason.starts_with(
      "the consumer reduces over an axis that the producer keeps"));
}

TEST(FuseErrors, DtypeThatTheDeviceLacksIsNamed) {
  Builder b;
  const Value x = b.placeholder(DType::Float64, {4});
  Capabilities caps = cores();
  caps.dtypes.reset(static_cast<int>(DType::Float64));
  b.set_outputs({b.alu(AluOp::Sin, {x})});
  try {
    fuse_kernels(materialize_outputs(b.graph()), caps);
    FAIL() << "no error";
  } catch (const UserError& error) {
    EXPECT_EQ(error.kind(), ErrorKind::DType);
    EXPECT_NE(std::string(error.what()).find("float64 on test-cores"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace rune::schedule
