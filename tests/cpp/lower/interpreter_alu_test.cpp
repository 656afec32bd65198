// Scalar operations in the interpreter equal alu/eval.h, for all operations and dtypes.
#include <limits>

#include "alu/eval.h"
#include "interpreter_fixture.h"

namespace rune::lower {
namespace {

// Values that are likely to go wrong, then random ones: of integers any bits, of floats of all
// sizes.
Scalar sample(DType dtype, std::mt19937_64& random) {
  static const double kSpecial[] = {0,   -0.0, 1,    -1,    2,     0.5,   -2.5,  3,      7,
                                    -8,  31,   32,   63,    64,    100,   1e-40, 65504,  1e30,
                                    127, 255,  -128, 32767, 65535, 2.5e9, -1e19, 1.8e19, 9.3e18};
  switch (random() % 8) {
    case 0: return Scalar::lowest(dtype);
    case 1: return Scalar::highest(dtype);
    case 2:
      if (is_float(dtype)) return Scalar::of(dtype, std::numeric_limits<double>::quiet_NaN());
      [[fallthrough]];
    case 3:
    case 4: return Scalar::of(dtype, kSpecial[random() % std::size(kSpecial)]);
    case 5: return Scalar::of(dtype, static_cast<double>(static_cast<int64_t>(random())) * 0x1p-60);
    default: return Scalar::from_bits(dtype, random());
  }
}

std::vector<Scalar> samples(DType dtype, size_t count, std::mt19937_64& random) {
  std::vector<Scalar> result;
  for (size_t i = 0; i < count; ++i) result.push_back(sample(dtype, random));
  return result;
}

Array array_of(const std::vector<Scalar>& values) {
  Array a(values[0].dtype(), static_cast<int64_t>(values.size()));
  for (size_t i = 0; i < values.size(); ++i) a.set(i, values[i]);
  return a;
}

void check_op(const AluInfo& row, DType dtype, std::mt19937_64& random) {
  constexpr int kCount = 240;
  constexpr int kLanes = 4;
  std::vector<DType> dtypes(row.arity, dtype);
  if (row.result == AluResult::Select) dtypes[0] = DType::Bool;
  const DType result = result_dtype(row.op, dtypes);
  Builder b;
  std::vector<Array> arrays;
  std::vector<Var> globals;
  for (const DType d : dtypes) {
    arrays.push_back(array_of(samples(d, kCount, random)));
    globals.push_back(b.define_global(d, static_cast<int64_t>(globals.size()), kCount, false));
  }
  arrays.emplace_back(result, kCount);
  const Var out = b.define_global(result, row.arity, kCount, true);
  const Var group = b.special(SpecialKind::Workgroup_idx, kCount / kLanes, DType::Int32);
  const Var at = b.alu(AluOp::Mul, {group, b.constant(Scalar::of(DType::Int32, kLanes))});
  std::vector<Var> operands;
  for (const Var g : globals) operands.push_back(b.load(g, at, kLanes));
  b.store(out, at, b.alu(row.op, operands));
  Kernel k = b.take();
  k.grid = kCount / kLanes;
  std::vector<Array*> pointers;
  for (Array& a : arrays) pointers.push_back(&a);
  run(k, pointers);
  for (int i = 0; i < kCount; ++i) {
    std::vector<Scalar> scalars;
    std::string text;
    for (int j = 0; j < row.arity; ++j) {
      scalars.push_back(arrays[j].at(i));
      text += scalars.back().text() + " ";
    }
    const Scalar expected = evaluate(row.op, scalars);
    EXPECT_TRUE(same_value(arrays.back().at(i), expected))
        << row.text << " " << name_of(dtype) << " of " << text << "gives "
        << arrays.back().at(i).text() << ", not " << expected.text();
  }
}

TEST(InterpreterAlu, EveryOperationOfEveryDTypeEqualsEvaluate) {
  std::mt19937_64 random(7);
  for (const AluInfo& row : all_alu_ops())
    for (int d = 0; d < kNumDTypes; ++d)
      if (row.accepts(static_cast<DType>(d))) check_op(row, static_cast<DType>(d), random);
}

TEST(InterpreterAlu, EveryCastEqualsScalarCast) {
  constexpr int kCount = 256;
  std::mt19937_64 random(8);
  for (int f = 0; f < kNumDTypes; ++f)
    for (int t = 0; t < kNumDTypes; ++t) {
      const DType from = static_cast<DType>(f), to = static_cast<DType>(t);
      Builder b;
      const Var in = b.define_global(from, 0, kCount, false),
                out = b.define_global(to, 1, kCount, true);
      const Var zero = b.constant(i64(0));
      const Var x = b.load(in, zero, kCount);
      b.store(out, zero, b.add(Cast{}, {x}, {to, kCount}));
      Array a = array_of(samples(from, kCount, random)), y(to, kCount);
      run(b.take(), {&a, &y});
      for (int i = 0; i < kCount; ++i) {
        const Scalar expected = a.at(i).cast(to);
        EXPECT_TRUE(same_value(y.at(i), expected))
            << a.at(i).text() << " " << name_of(from) << " to " << name_of(to) << " gives "
            << y.at(i).text() << ", not " << expected.text();
      }
    }
}

TEST(InterpreterAlu, EveryBitcastKeepsTheBits) {
  std::mt19937_64 random(9);
  for (int f = 0; f < kNumDTypes; ++f)
    for (int t = 0; t < kNumDTypes; ++t) {
      const DType from = static_cast<DType>(f), to = static_cast<DType>(t);
      if (size_of(from) != size_of(to)) continue;
      Builder b;
      const Var in = b.define_global(from, 0, 64, false), out = b.define_global(to, 1, 64, true);
      const Var zero = b.constant(i64(0));
      b.store(out, zero, b.add(Bitcast{}, {b.load(in, zero, 64)}, {to, 64}));
      Array a = array_of(samples(from, 64, random)), y(to, 64);
      run(b.take(), {&a, &y});
      for (int i = 0; i < 64; ++i)
        EXPECT_EQ(y.at(i), Scalar::from_bits(to, a.at(i).bits())) << name_of(from) << name_of(to);
    }
}

// A straight-line program of random operations, on random dtypes and lanes; `expected` holds the
// lanes of each instruction that has a value, computed by evaluate().
struct RandomProgram {
  Builder b;
  std::vector<std::vector<Scalar>> expected;
  std::vector<Var> values;
  std::mt19937_64 random;

  explicit RandomProgram(uint64_t seed) : random(seed) {}

  void record(Var v, std::vector<Scalar> lanes) {
    expected.resize(v.id + 1);
    expected[v.id] = std::move(lanes);
    values.push_back(v);
  }
  // A value of this type: one that exists, or a new constant.
  Var value(const Type& type) {
    std::vector<Var> fitting;
    for (const Var v : values)
      if (b.type(v) == type) fitting.push_back(v);
    if (!fitting.empty() && random() % 8) return fitting[random() % fitting.size()];
    std::vector<Scalar> lanes = samples(type.dtype, type.lanes, random);
    const Var v = type.lanes == 1 ? b.constant(lanes[0]) : b.vconst(lanes);
    record(v, lanes);
    return v;
  }
  void alu() {
    const AluInfo& row = all_alu_ops()[random() % kNumAluOps];
    const DType dtype = static_cast<DType>(random() % kNumDTypes);
    if (!row.accepts(dtype)) return;
    const int lanes = random() % 2 ? 1 : 4;
    std::vector<Var> operands;
    for (int i = 0; i < row.arity; ++i)
      operands.push_back(
          value({row.result == AluResult::Select && i == 0 ? DType::Bool : dtype, lanes}));
    std::vector<Scalar> results;
    for (int lane = 0; lane < lanes; ++lane) {
      std::vector<Scalar> scalars;
      for (const Var v : operands) scalars.push_back(expected[v.id][lane]);
      results.push_back(evaluate(row.op, scalars));
    }
    record(b.alu(row.op, operands), results);
  }
  void convert() {
    if (values.empty()) return;
    const Var x = values[random() % values.size()];
    const Type type = b.type(x);
    const DType to = static_cast<DType>(random() % kNumDTypes);
    const std::vector<Scalar> lanes = expected[x.id];
    std::vector<Scalar> results;
    switch (random() % 3) {
      case 0:
        if (to == type.dtype) return;
        for (const Scalar& s : lanes) results.push_back(s.cast(to));
        return record(b.cast(x, to), results);
      case 1:
        if (type.lanes != 1) return;
        return record(b.splat(x, 4), std::vector<Scalar>(4, lanes[0]));
      default:
        if (type.lanes == 1) return;
        return record(b.shuffle(x, {2, 0, 3, 3}), {lanes[2], lanes[0], lanes[3], lanes[3]});
    }
  }
};

TEST(InterpreterAlu, RandomProgramsEqualEvaluate) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    RandomProgram p(seed);
    for (int i = 0; i < 80; ++i) p.random() % 4 ? p.alu() : p.convert();
    std::vector<Array> arrays;
    std::vector<Var> stored = p.values;
    for (const Var v : stored) {
      const Type type = p.b.type(v);
      const Var g =
          p.b.define_global(type.dtype, static_cast<int64_t>(arrays.size()), type.lanes, true);
      p.b.store(g, p.b.constant(i64(0)), v);
      arrays.emplace_back(type.dtype, type.lanes);
    }
    const Kernel k = p.b.take();
    std::vector<Array*> pointers;
    for (Array& a : arrays) pointers.push_back(&a);
    run(k, pointers);
    for (size_t i = 0; i < stored.size(); ++i)
      for (size_t lane = 0; lane < p.expected[stored[i].id].size(); ++lane) {
        const Scalar& expected = p.expected[stored[i].id][lane];
        ASSERT_TRUE(same_value(arrays[i].at(lane), expected))
            << "seed " << seed << ", lane " << lane << " of " << print_instr(k, stored[i]) << ": "
            << arrays[i].at(lane).text() << ", not " << expected.text() << "\n"
            << print(k);
      }
  }
}

}  // namespace
}  // namespace rune::lower
