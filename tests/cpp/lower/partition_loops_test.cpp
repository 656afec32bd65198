// Partitioned loops compute what whole loops do, and their middle stretch has no masks.
#include "lower/passes/partition_loops.h"

#include "interpreter_fixture.h"

namespace rune::lower {
namespace {

constexpr int64_t kLanes = 4;

Capabilities any_cores() {
  Capabilities caps;
  caps.model = ExecutionModel::Cores;
  return caps;
}

// out[y, x] = in[y + dy, x + dx], 0 where that is outside, for height x width elements; rows in
// vectors, the last of which hangs over.
Kernel shifted(int64_t height, int64_t width, int64_t dy, int64_t dx) {
  const auto number = [](int64_t v) { return Scalar::of(DType::Int64, v); };
  const int64_t vectors = (width + kLanes - 1) / kLanes;
  Builder b;
  const Var in = b.define_global(DType::Float32, 0, height * width, false);
  const Var out = b.define_global(DType::Float32, 1, height * width, true);
  const Var lanes = b.vconst({number(0), number(1), number(2), number(3)});
  const auto at_least_zero = [&](Var x, int n) {
    return b.alu(AluOp::Cmple, {b.constant(number(0), n), x});
  };
  const Var y = b.range(b.constant(number(height)));
  const Var from_y = b.alu(AluOp::Add, {y, b.constant(number(dy))});
  const Var row = b.alu(AluOp::And, {at_least_zero(from_y, 1),
                                     b.alu(AluOp::Cmplt, {from_y, b.constant(number(height))})});
  const Var x0 =
      b.alu(AluOp::Mul, {b.range(b.constant(number(vectors))), b.constant(number(kLanes))});
  const Var x = b.alu(AluOp::Add, {b.splat(x0, kLanes), lanes});
  const Var from_x = b.alu(AluOp::Add, {x, b.constant(number(dx), kLanes)});
  const Var column =
      b.alu(AluOp::And, {at_least_zero(from_x, kLanes),
                         b.alu(AluOp::Cmplt, {from_x, b.constant(number(width), kLanes)})});
  const Var valid = b.alu(AluOp::And, {b.splat(row, kLanes), column});
  const auto position = [&](Var line, Var first) {
    return b.alu(AluOp::Add, {b.alu(AluOp::Mul, {line, b.constant(number(width))}), first});
  };
  const Var from = position(from_y, b.alu(AluOp::Add, {x0, b.constant(number(dx))}));
  const Var value = b.load(in, from, kLanes, valid);
  const Var inside = b.alu(AluOp::Cmplt, {x, b.constant(number(width), kLanes)});
  b.store(out, position(y, x0), value, inside);
  b.end_range();
  b.end_range();
  return b.take();
}

int count_loads(const Kernel& kernel, size_t args) {
  int count = 0;
  for (const Instr& instr : kernel.body)
    count += instr.kind() == InstrKind::Load && instr.args.size() == args;
  return count;
}

TEST(PartitionLoops, ComputesWhatTheWholeLoopDoes) {
  for (const int64_t width : {9, 12, 13, 16, 31})
    for (const int64_t dy : {-6, -1, 0, 2, 5})
      for (const int64_t dx : {-40, -5, -4, -1, 0, 1, 3, 4, 7, 40}) {
        const Kernel whole = shifted(5, width, dy, dx);
        const Kernel split = partition_loops(whole, any_cores());
        Array in(DType::Float32, 5 * width), a(DType::Float32, 5 * width), b = a;
        for (int64_t i = 0; i < in.size(); ++i) in.set(i, f32(static_cast<double>(i + 1)));
        run(whole, {&in, &a});
        run(split, {&in, &b});
        EXPECT_EQ(a.values(), b.values()) << "width " << width << " by " << dy << ", " << dx;
      }
}

TEST(PartitionLoops, TheMiddleHasNoMasks) {
  const Kernel split = partition_loops(shifted(100, 398, -1, -1), any_cores());
  EXPECT_EQ(count_loads(split, 2), 1);
  EXPECT_EQ(count_loads(split, 3), 2);
}

TEST(PartitionLoops, ContradictingMasksLeaveTheLoop) {
  // Nothing is read from so far to the right.
  const Kernel whole = shifted(100, 400, 0, 400);
  EXPECT_EQ(partition_loops(whole, any_cores()), whole);
}

TEST(PartitionLoops, ShortLoopsAndGridsStay) {
  const Kernel narrow = shifted(100, 8, 0, 1);
  EXPECT_EQ(partition_loops(narrow, any_cores()), narrow);
  Capabilities grid = any_cores();
  grid.model = ExecutionModel::Grid;
  const Kernel wide = shifted(100, 400, 0, 1);
  EXPECT_EQ(partition_loops(wide, grid), wide);
}

TEST(PartitionLoops, AccumulatorsKeepTheOrderOfIterations) {
  // A running product-sum that depends on order: acc = acc * 2 + (i < 5 ? in[i] : 0).
  const auto number = [](int64_t v) { return Scalar::of(DType::Int64, v); };
  Builder b;
  const Var in = b.define_global(DType::Float32, 0, 20, false);
  const Var out = b.define_global(DType::Float32, 1, 1, true);
  const Var acc = b.acc(b.constant(f32(0)));
  const Var i = b.range(b.constant(number(9)));
  const Var valid = b.alu(AluOp::Cmplt, {i, b.constant(number(5))});
  const Var x = b.load(in, i, 1, valid);
  b.assign(acc, b.alu(AluOp::Add, {b.alu(AluOp::Mul, {acc, b.constant(f32(2))}), x}));
  b.end_range();
  b.store(out, b.constant(number(0)), acc);
  const Kernel whole = b.take();
  const Kernel split = partition_loops(whole, any_cores());
  EXPECT_EQ(count_loads(split, 2), 1);
  Array values(DType::Float32, 20), one(DType::Float32, 1), two = one;
  for (int64_t k = 0; k < 20; ++k) values.set(k, f32(static_cast<double>(k * k + 1)));
  run(whole, {&values, &one});
  run(split, {&values, &two});
  EXPECT_EQ(one.values(), two.values());
}

}  // namespace
}  // namespace rune::lower
