// Each instruction kind, interpreted.
#include <chrono>
#include <cmath>
#include <numeric>

#include "interpreter_fixture.h"

namespace rune::lower {
namespace {

TEST(Interpreter, ConstantsInEveryLane) {
  Builder b;
  const Var g = b.define_global(DType::Float32, 0, 8, true);
  const Var v = b.vconst({f32(1), f32(-0.0), f32(3), f32(4)});
  b.store(g, b.constant(i64(0)), v);
  b.store(g, b.constant(i64(4)), b.constant(f32(7), 4));
  Array a(DType::Float32, 8);
  run(b.take(), {&a});
  EXPECT_EQ(a.values(), (std::vector<double>{1, 0, 3, 4, 7, 7, 7, 7}));
  EXPECT_TRUE(std::signbit(a.at(1).as_double()));
}

TEST(Interpreter, PositionsInTheLaunch) {
  Builder b;
  const Var g = b.define_global(DType::Int32, 0, 36, true);
  const Var task = b.special(SpecialKind::Global_task_idx, 12, DType::Int64);
  const Var values[] = {task, b.special(SpecialKind::Workgroup_idx, 3, DType::Int64),
                        b.special(SpecialKind::Local_thread_idx, 4, DType::Int64)};
  for (int i = 0; i < 3; ++i) {
    const Var at = b.alu(AluOp::Mulacc, {task, b.constant(i64(3)), b.constant(i64(i))});
    b.store(g, at, b.cast(values[i], DType::Int32));
  }
  Kernel k = b.take();
  k.grid = 3;
  k.local = 4;
  Array a(DType::Int32, 36);
  run(k, {&a});
  for (int64_t task = 0; task < 12; ++task) {
    const int64_t expected[] = {task, task / 4, task % 4};
    for (int i = 0; i < 3; ++i) EXPECT_EQ(a.at(3 * task + i).as_int64(), expected[i]) << task;
  }
}

// out[0] = sum over nested loops, through an Acc, of i * 10 + j; Unroll counts as a Range.
TEST(Interpreter, RangesUnrollAndAcc) {
  Builder b;
  const Var g = b.define_global(DType::Int64, 0, 2, true);
  const Var zero = b.constant(i64(0));
  const Var sum = b.acc(zero), inner_max = b.acc(zero);
  const Var i = b.range(b.constant(i64(4)));
  const Var count = b.acc(zero);  // starts anew in each iteration
  const Var j = b.add(Unroll{3}, {}, {DType::Int64});
  b.assign(count, b.alu(AluOp::Add, {count, b.constant(i64(1))}));
  const Var term = b.alu(AluOp::Mulacc, {i, b.constant(i64(10)), j});
  b.assign(sum, b.alu(AluOp::Add, {sum, term}));
  b.end_range();
  b.assign(inner_max, b.alu(AluOp::Max, {inner_max, count}));
  b.end_range();
  b.store(g, zero, sum);
  b.store(g, b.constant(i64(1)), inner_max);
  Array a(DType::Int64, 2);
  run(b.take(), {&a});
  EXPECT_EQ(a.values(), (std::vector<double>{3 * 10 * 6 + 4 * 3, 3}));
}

TEST(Interpreter, RangeBounds) {
  for (const int64_t bound : {-3, 0, 1, 5}) {
    Builder b;
    const Var g = b.define_global(DType::Int64, 0, 1, true);
    const Var n = b.define_var({"n", -10, 10});
    const Var acc = b.acc(b.constant(i64(0)));
    // Assigning what the bound was read from does not change the running loop.
    const Var limit = b.acc(n);
    b.range(limit);
    b.assign(acc, b.alu(AluOp::Add, {acc, b.constant(i64(1))}));
    b.assign(limit, b.constant(i64(100)));
    b.end_range();
    b.store(g, b.constant(i64(0)), acc);
    Array a(DType::Int64, 1);
    run(b.take(), {&a}, {bound});
    EXPECT_EQ(a.at(0).as_int64(), std::max<int64_t>(bound, 0));
  }
}

TEST(Interpreter, If) {
  Builder b;
  const Var g = b.define_global(DType::Int64, 0, 8, true);
  const Var t = b.special(SpecialKind::Global_task_idx, 8, DType::Int64);
  const Var result = b.acc(b.constant(i64(-1)));
  b.if_(b.alu(AluOp::Cmplt, {t, b.constant(i64(5))}));
  b.if_(b.alu(AluOp::Cmplt, {b.constant(i64(2)), t}));
  b.assign(result, t);
  b.end_if();
  b.end_if();
  b.store(g, t, result);
  Kernel k = b.take();
  k.grid = 4;
  k.local = 2;
  Array a(DType::Int64, 8);
  run(k, {&a});
  EXPECT_EQ(a.values(), (std::vector<double>{-1, -1, -1, 3, 4, -1, -1, -1}));
}

TEST(Interpreter, DefineVar) {
  Builder b;
  const Var g = b.define_global(DType::Int64, 0, 3, true);
  const Var n = b.define_var({"n", 1, 9}), m = b.define_var({"m", 1, 9}, DType::Int64);
  const Var again = b.define_var({"n", 1, 9}, DType::Int64);
  b.store(g, b.constant(i64(0)), b.shuffle({n, m, again}, {0, 1, 2}));
  const Kernel k = b.take();
  Array a(DType::Int64, 3);
  run(k, {&a}, {4, 7});
  EXPECT_EQ(a.values(), (std::vector<double>{4, 7, 4}));
  expect_part(error_of(k, {&a}, {4}), "with 1 symbolic values (it has 2)");
  expect_part(error_of(k, {&a}, {4, 10}), "m = 10 (it lies in [1,9])");
  expect_part(error_of(k, {}, {4, 7}), "with 0 buffers (it has 1)");
}

TEST(Interpreter, GathersAndMasks) {
  Builder b;
  const Var in = b.define_global(DType::Int16, 0, 4, false);
  const Var out = b.define_global(DType::Int16, 1, 12, true);
  const auto bools = [&](std::vector<bool> v) {
    std::vector<Scalar> s;
    for (const bool x : v) s.push_back(Scalar::of(DType::Bool, x));
    return b.vconst(s);
  };
  const Var index = b.vconst({i64(3), i64(0), i64(3), i64(99)});
  const Var gathered = b.load(in, index, 4, bools({true, true, true, false}));
  b.store(out, b.constant(i64(0)), gathered);
  // A masked tail: elements 2, 3 are there, 4, 5 are not.
  const Var tail = b.load(in, b.constant(i64(2)), 4, bools({true, true, false, false}));
  b.store(out, b.constant(i64(4)), tail);
  b.store(out, b.constant(i64(11)), tail, bools({true, false, false, false}));
  const Var never = b.constant(Scalar::of(DType::Bool, false));
  b.store(out, b.constant(i64(-5)), b.load(in, b.constant(i64(1000)), 2, never), never);
  // A scatter.
  b.store(out, b.vconst({i64(9), i64(8)}), b.load(in, b.constant(i64(0)), 2));
  Array x(DType::Int16, std::vector<double>{-10, 20, 30, 40}), y(DType::Int16, 12);
  run(b.take(), {&x, &y});
  EXPECT_EQ(y.values(), (std::vector<double>{40, -10, 40, 0, 30, 40, 0, 0, 20, -10, 0, 30}));
}

TEST(Interpreter, ShuffleAndBitcast) {
  Builder b;
  const Var g = b.define_global(DType::Uint32, 0, 8, true);
  const Var v = b.vconst({f32(1), f32(2), f32(-0.0), f32(4)});
  const Var swapped = b.shuffle(v, {2, 0});
  const Var joined = b.shuffle({b.shuffle(swapped, {1}), b.shuffle(v, {3})}, {0, 1});
  b.store(g, b.constant(i64(0)), b.bitcast(swapped, DType::Uint32));
  b.store(g, b.constant(i64(2)), b.bitcast(joined, DType::Uint32));
  const Var minus = b.constant(Scalar::of(DType::Int32, -1));
  b.store(g, b.constant(i64(4)), b.bitcast(b.splat(minus, 3), DType::Uint32));
  // Bits that are no number survive the way through float32.
  const Var nan = b.constant(Scalar::of(DType::Uint32, uint64_t{0x7fa12345}));
  b.store(g, b.constant(i64(7)), b.bitcast(b.bitcast(nan, DType::Float32), DType::Uint32));
  Array a(DType::Uint32, 8);
  run(b.take(), {&a});
  EXPECT_EQ(a.values(), (std::vector<double>{0x80000000u, 0x3f800000u, 0x3f800000u, 0x40800000u,
                                             0xffffffffu, 0xffffffffu, 0xffffffffu, 0x7fa12345u}));
}

TEST(Interpreter, WmmaOfSeveralDTypes) {
  const int64_t m = 2, n = 2, k = 4;
  for (const auto& [in, sum] : {std::pair{DType::Float32, DType::Float32},
                                {DType::Float16, DType::Float32},
                                {DType::Float16, DType::Float16},
                                {DType::Int8, DType::Int32},
                                {DType::Float64, DType::Float64}}) {
    Builder b;
    const Var ga = b.define_global(in, 0, m * k, false), gb = b.define_global(in, 1, k * n, false);
    const Var gc = b.define_global(sum, 2, m * n, true);
    const Var zero = b.constant(i64(0));
    const Var c = b.load(gc, zero, m * n);
    const Wmma shape{m, n, k, {{1, 2, 4}, {1, 2, 4}, {1, 2}}};  // whole tiles in one thread
    b.store(gc, zero, b.wmma(shape, b.load(ga, zero, m * k), b.load(gb, zero, k * n), c));
    std::vector<double> av(m * k), bv(k * n), cv(m * n), expected(m * n);
    std::iota(av.begin(), av.end(), -3);
    std::iota(bv.begin(), bv.end(), 1);
    std::iota(cv.begin(), cv.end(), 100);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        expected[i * n + j] = cv[i * n + j];
        for (int64_t p = 0; p < k; ++p) expected[i * n + j] += av[i * k + p] * bv[p * n + j];
      }
    Array aa(in, av), ab(in, bv), ac(sum, cv);
    run(b.take(), {&aa, &ab, &ac});
    EXPECT_EQ(ac.values(), expected) << name_of(in) << " " << name_of(sum);
  }
}

TEST(Interpreter, SimdReduceWithinItsGroups) {
  for (const bool reverse : {false, true}) {
    Builder b;
    const Var out = b.define_global(DType::Int64, 0, 24, true);
    const Var task = b.special(SpecialKind::Global_task_idx, 24, DType::Int64);
    const Var sum = b.simd_reduce(AluOp::Add, 4, task);
    const Var most = b.simd_reduce(AluOp::Max, 4, b.alu(AluOp::Neg, {task}));
    b.store(out, task, b.alu(AluOp::Add, {b.alu(AluOp::Mul, {sum, b.constant(i64(100))}), most}));
    Kernel k = b.take();
    k.grid = 2;
    k.local = 12;
    Array a(DType::Int64, 24);
    run(k, {&a}, {}, {.reverse_order = reverse});
    for (int64_t i = 0; i < 24; ++i) {
      const int64_t first = i / 4 * 4;
      EXPECT_EQ(a.at(i).as_int64(), (4 * first + 6) * 100 - first);
    }
  }
}

TEST(Interpreter, SimdShuffleWithinItsGroups) {
  const auto shuffled = [](int64_t shift, bool reverse) {
    Builder b;
    const Var out = b.define_global(DType::Int64, 0, 24, true);
    const Var task = b.special(SpecialKind::Global_task_idx, 24, DType::Int64);
    const Var lane = b.alu(AluOp::Fmod, {task, b.constant(i64(4))});
    const Var turned = b.alu(AluOp::Sub, {b.constant(i64(shift)), lane});
    b.store(out, task, b.simd_shuffle(4, task, turned));
    Kernel k = b.take();
    k.grid = 2;
    k.local = 12;
    Array a(DType::Int64, 24);
    run(k, {&a}, {}, {.reverse_order = reverse});
    return a.values();
  };
  for (const bool reverse : {false, true}) {
    const auto values = shuffled(3, reverse);
    for (int64_t i = 0; i < 24; ++i)
      EXPECT_EQ(values[i], static_cast<double>(i / 4 * 4 + 3 - i % 4));
  }
  EXPECT_THROW(shuffled(4, false), UserError);  // lane 4 of 4
  EXPECT_THROW(shuffled(2, false), UserError);  // lane -1
}

TEST(Interpreter, ABreakLeavesItsLoop) {
  // Sums 0 + 1 + ... in each of three outer iterations, and leaves the inner loop at the bound.
  Builder b;
  const Var out = b.define_global(DType::Int64, 0, 4, true);
  const Var zero = b.constant(i64(0)), two = b.constant(i64(2)), three = b.constant(i64(3));
  const Var sum = b.acc(zero);
  const Var i = b.range(three);
  const Var k = b.range(b.constant(i64(1000)));
  b.break_if(b.alu(AluOp::Cmplt, {b.alu(AluOp::Add, {i, two}), k}));
  b.assign(sum, b.alu(AluOp::Add, {sum, k}));
  b.end_range();
  b.store(out, i, sum);
  b.end_range();
  b.store(out, three, sum);
  Array x(DType::Int64, 4);
  run(b.take(), {&x});
  EXPECT_EQ(x.values(), (std::vector<double>{3, 9, 19, 19}));
}

TEST(Interpreter, CustomIsUnsupported) {
  Builder b;
  b.custom({"magic", "magic($0)"}, {b.constant(i64(1))}, {DType::Int64});
  Kernel k = b.take();
  k.name = "k7";
  try {
    Interpreter(k).run({});
    FAIL();
  } catch (const UserError& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Unsupported);
    expect_part(e.what(), "magic of kernel k7");
  }
}

TEST(Interpreter, RefusesAnInvalidStructure) {
  Kernel k;
  k.body.push_back({EndIf{}, {}, {}});
  EXPECT_THROW(Interpreter(k).run({}), InternalError);
}

TEST(Interpreter, EveryDTypeInMemory) {
  for (int d = 0; d < kNumDTypes; ++d) {
    const DType dtype = static_cast<DType>(d);
    Builder b;
    const Var in = b.define_global(dtype, 0, 8, false), out = b.define_global(dtype, 1, 8, true);
    const Var local = b.local(dtype, 8), other = b.local(dtype, 8);
    const Var zero = b.constant(i64(0)), three = b.constant(i64(3));
    b.store(local, zero, b.load(in, zero, 8));
    b.store(other, zero, b.load(local, zero, 8));
    b.store(out, zero, b.load(other, zero, 3));
    b.store(out, three, b.load(other, three, 5));
    Array x(dtype, std::vector<double>{0, 1, -1, 0.1, 127, -128, 3e5, -3e5}), y(dtype, 8);
    run(b.take(), {&x, &y});
    EXPECT_EQ(x.bytes, y.bytes) << name_of(dtype);
  }
}

TEST(Interpreter, ABoolIsAnyByteOtherThanZero) {
  Builder b;
  const Var in = b.define_global(DType::Bool, 0, 3, false),
            out = b.define_global(DType::Bool, 1, 3, true);
  b.store(out, b.constant(i64(0)), b.load(in, b.constant(i64(0)), 3));
  Array x(DType::Bool, 3), y(DType::Bool, 3);
  x.bytes = {0, 2, 255};
  run(b.take(), {&x, &y});
  EXPECT_EQ(y.bytes, (std::vector<uint8_t>{0, 1, 1}));
}

TEST(Interpreter, WorkgroupMemoryStartsUndefined) {
  Builder b;
  const Var out = b.define_global(DType::Float32, 0, 2, true);
  const Var ints = b.define_global(DType::Int8, 1, 2, true);
  const Var f = b.local(DType::Float32, 4);
  const Var i = b.local(DType::Int8, 4);
  const Var group = b.special(SpecialKind::Workgroup_idx, 2, DType::Int64);
  // What one group leaves behind, the next one does not see.
  b.store(out, group, b.load(f, b.constant(i64(2))));
  b.store(ints, group, b.load(i, b.constant(i64(2))));
  b.store(f, b.constant(i64(2)), b.constant(f32(1)));
  b.store(i, b.constant(i64(2)), b.constant(Scalar::of(DType::Int8, 1)));
  Kernel k = b.take();
  k.grid = 2;
  Array x(DType::Float32, 2), y(DType::Int8, 2);
  run(k, {&x, &y});
  for (int g = 0; g < 2; ++g) {
    EXPECT_TRUE(std::isnan(x.at(g).as_double())) << g;
    EXPECT_EQ(y.at(g).as_int64(), static_cast<int8_t>(0xa5)) << g;
  }
}

// Three workgroups use the same memory. The fourth one gets other memory.
TEST(Interpreter, AWorkgroupFindsWhatThePreviousOneLeft) {
  Builder b;
  const Var out = b.define_global(DType::Int64, 0, 8, true);
  const Var memory = b.local(DType::Int64, 1);
  const Var group = b.special(SpecialKind::Workgroup_idx, 4, DType::Int64);
  const Var previous = b.special(SpecialKind::Previous_workgroup_idx, 4, DType::Int64);
  const Var zero = b.constant(i64(0)), four = b.constant(i64(4));
  b.store(out, group, previous);
  b.store(out, b.alu(AluOp::Add, {group, four}), b.load(memory, zero));
  b.store(memory, zero, group);
  Kernel k = b.take();
  k.grid = 4;
  const auto undefined = static_cast<double>(static_cast<int64_t>(0xa5a5a5a5a5a5a5a5));
  for (const bool reverse : {false, true}) {
    Array o(DType::Int64, 8);
    run(k, {&o}, {}, {.check_races = true, .reverse_order = reverse});
    EXPECT_EQ(o.values(), reverse
                              ? (std::vector<double>{-1, 2, 3, -1, undefined, 2, 3, undefined})
                              : (std::vector<double>{-1, 0, 1, -1, undefined, 0, 1, undefined}));
  }
}

TEST(Interpreter, ReverseOrderRunsTheLastThreadFirst) {
  // Each thread writes its number plus 1 in order of arrival, counted without synchronisation.
  Builder b;
  const Var order = b.define_global(DType::Int64, 0, 6, true);
  const Var counter = b.define_global(DType::Int64, 1, 1, true);
  const Var t = b.special(SpecialKind::Global_task_idx, 6, DType::Int64);
  const Var zero = b.constant(i64(0));
  const Var count = b.load(counter, zero);
  b.store(order, count, t);
  b.store(counter, zero, b.alu(AluOp::Add, {count, b.constant(i64(1))}));
  Kernel k = b.take();
  k.grid = 2;
  k.local = 3;
  for (const bool reverse : {false, true}) {
    Array o(DType::Int64, 6), c(DType::Int64, 1);
    run(k, {&o, &c}, {}, {.check_races = false, .reverse_order = reverse});
    EXPECT_EQ(o.values(), reverse ? (std::vector<double>{5, 4, 3, 2, 1, 0})
                                  : (std::vector<double>{0, 1, 2, 3, 4, 5}));
  }
}

TEST(Interpreter, IsFastEnoughForTests) {
  // 10^6 loads, multiply-adds and stores take well under a second in Release; the limit leaves room
  // for Debug builds with sanitizers.
  const int64_t size = 1 << 20;
  Builder b;
  const Var g = b.define_global(DType::Float32, 0, size, true);
  const Var group = b.special(SpecialKind::Workgroup_idx, 64, DType::Int64);
  const Var base = b.alu(AluOp::Mul, {group, b.constant(i64(size / 64))});
  const Var i = b.range(b.constant(i64(size / 64)));
  const Var at = b.alu(AluOp::Add, {base, i});
  const Var x = b.load(g, at);
  b.store(g, at, b.alu(AluOp::Mulacc, {x, x, x}));
  b.end_range();
  Kernel k = b.take();
  k.grid = 64;
  Array a(DType::Float32, size);
  const auto start = std::chrono::steady_clock::now();
  run(k, {&a});
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  RecordProperty("instructions_per_second", std::to_string(5 * size / seconds.count()));
  EXPECT_LT(seconds.count(), 10);
}

}  // namespace
}  // namespace rune::lower
