// What the interpreter reports: accesses out of bounds, barriers, races.
#include "interpreter_fixture.h"

namespace rune::lower {
namespace {

Kernel launched(Builder& b, int64_t grid, int64_t local) {
  Kernel k = b.take();
  k.name = "k3";
  k.grid = grid;
  k.local = local;
  return k;
}

TEST(InterpreterBounds, LoadAndStore) {
  for (const bool store : {false, true})
    for (const int lanes : {1, 4})
      for (const int64_t offset : {int64_t{-1}, int64_t{0}, int64_t{9 - lanes}, int64_t{8}}) {
        Builder b;
        const Var g = b.define_global(DType::Float32, 0, 8, true);
        const Var n = b.define_var({"n", -100, 100});
        if (store)
          b.store(g, n, b.constant(f32(1), lanes));
        else
          b.load(g, n, lanes);
        const Kernel k = launched(b, 1, 1);
        Array a(DType::Float32, 8);
        const std::string error = error_of(k, {&a}, {offset});
        if (offset == 0) {
          EXPECT_EQ(error, "no error");
          continue;
        }
        expect_part(error, store ? "store: cannot write element " : "load: cannot read element ");
        expect_part(error, offset < 0 ? "element -1 of %0 (it has 8 elements)"
                                      : "element 8 of %0 (it has 8 elements)");
        expect_part(error, print_instr(k, Var{store ? 3u : 2u}));
        expect_part(error, "kernel k3");
      }
}

TEST(InterpreterBounds, TheActualMemoryCounts) {
  Builder b;
  const Var g = b.define_global(DType::Int8, 0, 8, false);
  b.load(g, b.constant(i64(5)));
  Array a(DType::Int8, 5);
  expect_part(error_of(launched(b, 1, 1), {&a}), "element 5 of %0 (it has 5 elements)");
}

TEST(InterpreterBounds, GatherFromWorkgroupMemory) {
  Builder b;
  const Var n = b.define_var({"n", 0, 100});
  b.load(b.local(DType::Int8, 7), b.shuffle({b.constant(i64(0)), n}, {0, 1}));
  expect_part(error_of(launched(b, 1, 1), {}, {7}), "element 7 of %3 (it has 7 elements)");
}

// out[group] = sum of the group's `threads` elements, by a tree over Local memory. `skip` leaves
// out one of the barriers (0: after filling, 1: in the loop).
Kernel tree_reduction(int64_t threads, int64_t groups, int skip = -1) {
  Builder b;
  const Var in = b.define_global(DType::Float32, 0, threads * groups, false);
  const Var out = b.define_global(DType::Float32, 1, groups, true);
  const Var shared = b.local(DType::Float32, threads);
  const Var t = b.special(SpecialKind::Local_thread_idx, threads, DType::Int64);
  const Var g = b.special(SpecialKind::Workgroup_idx, groups, DType::Int64);
  const Var task = b.special(SpecialKind::Global_task_idx, threads * groups, DType::Int64);
  b.store(shared, t, b.load(in, task));
  if (skip != 0) b.barrier();
  int64_t steps = 0;
  while ((int64_t{1} << steps) < threads) ++steps;
  const Var width = b.acc(b.constant(i64(threads / 2)));
  b.range(b.constant(i64(steps)));
  b.if_(b.alu(AluOp::Cmplt, {t, width}));
  const Var other = b.load(shared, b.alu(AluOp::Add, {t, width}));
  b.store(shared, t, b.alu(AluOp::Add, {b.load(shared, t), other}));
  b.end_if();
  if (skip != 1) b.barrier();
  b.assign(width, b.alu(AluOp::Div, {width, b.constant(i64(2))}));
  b.end_range();
  const Var zero = b.constant(i64(0));
  b.if_(b.alu(AluOp::Cmpeq, {t, zero}));
  b.store(out, g, b.load(shared, zero));
  b.end_if();
  return launched(b, groups, threads);
}

TEST(InterpreterBarrier, TreeReduction) {
  for (const int64_t threads : {1, 2, 32, 256}) {
    const int64_t groups = 5;
    std::vector<double> values;
    for (int64_t i = 0; i < threads * groups; ++i) values.push_back(static_cast<double>(i % 17));
    for (const bool reverse : {false, true}) {
      Array in(DType::Float32, values), out(DType::Float32, groups);
      run(tree_reduction(threads, groups), {&in, &out}, {}, {.reverse_order = reverse});
      for (int64_t g = 0; g < groups; ++g) {
        double sum = 0;
        for (int64_t t = 0; t < threads; ++t) sum += values[g * threads + t];
        EXPECT_EQ(out.at(g).as_double(), sum);
      }
    }
  }
}

TEST(InterpreterBarrier, ATreeReductionWithoutOneBarrierIsARace) {
  for (const int skip : {0, 1})
    for (const bool reverse : {false, true}) {
      Array in(DType::Float32, std::vector<double>(64, 1)), out(DType::Float32, 2);
      const std::string error =
          error_of(tree_reduction(32, 2, skip), {&in, &out}, {}, {.reverse_order = reverse});
      expect_part(error, "of %2: ");
      expect_part(error, "since the last barrier (data race)");
      expect_part(error, "kernel k3");
      EXPECT_EQ(error_of(tree_reduction(32, 2, skip), {&in, &out}, {}, {.check_races = false}),
                "no error");
    }
}

// `flags` (one per thread) decides which threads take the branch that `emit` fills.
template <class F>
std::string branch_error(const std::vector<double>& flags, F emit) {
  Builder b;
  const int64_t threads = static_cast<int64_t>(flags.size());
  const Var in = b.define_global(DType::Bool, 0, threads, false);
  const Var t = b.special(SpecialKind::Local_thread_idx, threads, DType::Int64);
  const Var flag = b.load(in, t);
  emit(b, flag);
  Array a(DType::Bool, flags);
  return error_of(launched(b, 1, threads), {&a});
}

TEST(InterpreterBarrier, NotReachedByAll) {
  const auto body = [](Builder& b, Var flag) {
    b.if_(flag);
    b.barrier();
    b.end_if();
  };
  EXPECT_EQ(branch_error({1, 1, 1}, body), "no error");
  EXPECT_EQ(branch_error({0, 0, 0}, body), "no error");
  for (const std::vector<double>& flags : {std::vector<double>{1, 0, 1}, {0, 1, 1}}) {
    const std::string error = branch_error(flags, body);
    expect_part(error, "barrier: cannot wait for all threads");
    expect_part(error, flags[0] ? "thread 1 reaches the end without it"
                                : "thread 0 reaches the end without it");
    expect_part(error, "`barrier` of kernel k3");
  }
}

TEST(InterpreterBarrier, DifferentBarriers) {
  const std::string error = branch_error({0, 1}, [](Builder& b, Var flag) {
    b.if_(flag);
    b.barrier();
    b.end_if();
    b.if_(b.alu(AluOp::Not, {flag}));
    b.barrier();
    b.end_if();
  });
  expect_part(error, "barrier: cannot wait for all threads");
  expect_part(error, "waits at instruction 8");
  expect_part(error, "waits at `barrier`, instruction 4");
}

TEST(InterpreterBarrier, DifferentIterations) {
  const std::string error = branch_error({0, 1}, [](Builder& b, Var flag) {
    const Var i = b.range(b.constant(i64(2)));
    const Var mine = b.alu(AluOp::Cmpeq, {i, b.cast(flag, DType::Int64)});
    b.if_(mine);
    b.barrier();
    b.end_if();
    b.end_range();
  });
  expect_part(error, "barrier: cannot wait in different iterations");
  expect_part(error, "thread 1 is in iteration 1, thread 0 in 0");
}

enum class Space { Local, Global };

// Thread t of 4 runs `first` and, after a barrier if there is one, `second`.
template <class A, class B>
std::string race_error(Space space, bool barrier, A first, B second, bool reverse = false) {
  Builder b;
  const Var memory =
      space == Space::Local ? b.local(DType::Int64, 8) : b.define_global(DType::Int64, 0, 8, true);
  const Var t = b.special(SpecialKind::Local_thread_idx, 4, DType::Int64);
  first(b, memory, t);
  if (barrier) b.barrier();
  second(b, memory, t);
  Array a(DType::Int64, 8);
  std::vector<Array*> arrays;
  if (space == Space::Global) arrays.push_back(&a);
  return error_of(launched(b, 1, 4), arrays, {}, {.reverse_order = reverse});
}

void write_own(Builder& b, Var memory, Var t) {
  b.store(memory, t, t);
}
void write_first(Builder& b, Var memory, Var t) {
  b.store(memory, b.constant(i64(0)), t);
}
void write_seven(Builder& b, Var memory, Var) {
  b.store(memory, b.constant(i64(0)), b.constant(i64(7)));
}
void read_own(Builder& b, Var memory, Var t) {
  b.load(memory, t);
}
void read_next(Builder& b, Var memory, Var t) {
  b.load(memory, b.alu(AluOp::Add, {t, b.constant(i64(1))}));
}
void read_first(Builder& b, Var memory, Var) {
  b.load(memory, b.constant(i64(0)));
}
void write_from_the_end(Builder& b, Var memory, Var t) {
  b.store(memory, b.alu(AluOp::Sub, {b.constant(i64(3)), t}), t);
}
void nothing(Builder&, Var, Var) {}

TEST(InterpreterRace, BetweenThreadsOfAGroup) {
  for (const Space space : {Space::Local, Space::Global})
    for (const bool reverse : {false, true}) {
      const auto race = [&](auto first, auto second) {
        const std::string error = race_error(space, false, first, second, reverse);
        expect_part(error, "since the last barrier (data race)");
        EXPECT_EQ(race_error(space, true, first, second, reverse), "no error");
      };
      const auto clean = [&](auto first, auto second) {
        EXPECT_EQ(race_error(space, false, first, second, reverse), "no error");
        EXPECT_EQ(race_error(space, true, first, second, reverse), "no error");
      };
      race(write_own, read_next);
      race(write_own, read_first);
      race(read_next, write_own);
      race(read_first, write_own);
      clean(write_own, read_own);
      clean(read_own, write_own);
      clean(read_first, read_next);
      clean(write_seven, nothing);  // equal values
      const std::string error = race_error(space, true, write_first, nothing, reverse);
      expect_part(error, "store: cannot write element 0 of %0: thread ");
      expect_part(error, " wrote it since the last barrier");
    }
}

// Each thread finds in its memory what it has stored, at the same indices as the others.
TEST(InterpreterRace, NoneInMemoryOfEachThread) {
  for (const bool reverse : {false, true}) {
    Builder b;
    const Var out = b.define_global(DType::Int64, 0, 8, true);
    const Var own = b.private_memory(DType::Int64, 2);
    const Var task = b.special(SpecialKind::Global_task_idx, 8, DType::Int64);
    const Var one = b.constant(i64(1));
    b.store(own, one, task);
    b.barrier();
    b.store(out, task, b.load(own, one));
    Array a(DType::Int64, 8);
    EXPECT_EQ(error_of(launched(b, 2, 4), {&a}, {}, {.reverse_order = reverse}), "no error");
    for (size_t i = 0; i < 8; ++i) EXPECT_EQ(a.at(i).as_int64(), static_cast<int64_t>(i));
  }
}

TEST(InterpreterBounds, OfMemoryOfEachThread) {
  Builder b;
  const Var own = b.private_memory(DType::Int64, 2);
  b.store(own, b.special(SpecialKind::Local_thread_idx, 4, DType::Int64), b.constant(i64(1)));
  expect_part(error_of(launched(b, 1, 4), {}, {}), "cannot write element 2 of %0 (it has 2");
}

TEST(InterpreterRace, NamesTheThreads) {
  const std::string error = race_error(Space::Local, false, write_own, read_first);
  expect_part(error, "load: cannot read element 0 of %0: thread 0 wrote it");
  expect_part(error, "workgroup 0, thread 1");
  const std::string several = race_error(Space::Local, false, read_first, write_from_the_end);
  expect_part(several, "store: cannot write element 0 of %0: other threads read it since");
}

// Each of 3 groups of one thread runs `first`, then `second`, on one memory.
template <class A, class B>
std::string group_error(A first, B second, bool reverse, bool global = true) {
  Builder b;
  const Var memory = global ? b.define_global(DType::Int64, 0, 8, true) : b.local(DType::Int64, 8);
  const Var g = b.special(SpecialKind::Workgroup_idx, 3, DType::Int64);
  first(b, memory, g);
  second(b, memory, g);
  Array a(DType::Int64, 8);
  std::vector<Array*> arrays;
  if (global) arrays.push_back(&a);
  return error_of(launched(b, 3, 1), arrays, {}, {.reverse_order = reverse});
}

TEST(InterpreterRace, BetweenGroups) {
  for (const bool reverse : {false, true}) {
    const auto race = [&](auto first, auto second) {
      expect_part(group_error(first, second, reverse), "another workgroup");
      EXPECT_EQ(group_error(first, second, reverse, false), "no error");
    };
    const auto clean = [&](auto first, auto second) {
      EXPECT_EQ(group_error(first, second, reverse), "no error");
    };
    race(write_own, read_next);
    race(read_next, write_own);
    race(write_own, read_first);
    race(read_first, write_own);
    race(write_first, nothing);
    clean(write_own, read_own);
    clean(read_own, write_own);
    clean(read_first, read_next);
    clean(write_seven, nothing);
    race(write_seven, read_first);
  }
}

TEST(InterpreterRace, BarriersDoNotOrderGroups) {
  Builder b;
  const Var memory = b.define_global(DType::Int64, 0, 4, true);
  const Var task = b.special(SpecialKind::Global_task_idx, 4, DType::Int64);
  b.store(memory, task, task);
  b.barrier();
  b.load(memory, b.alu(AluOp::Xor, {task, b.constant(i64(2))}));
  Array a(DType::Int64, 4);
  expect_part(error_of(launched(b, 2, 2), {&a}), "another workgroup read it");
}

TEST(InterpreterRace, ArgumentsThatAreOneMemory) {
  Builder b;
  const Var in = b.define_global(DType::Int64, 0, 4, false);
  const Var out = b.define_global(DType::Int64, 1, 4, true);
  const Var g = b.special(SpecialKind::Workgroup_idx, 3, DType::Int64);
  b.store(out, g, b.load(in, b.alu(AluOp::Add, {g, b.constant(i64(1))})));
  const Kernel k = launched(b, 3, 1);
  Array x(DType::Int64, 4), y(DType::Int64, 4);
  EXPECT_EQ(error_of(k, {&x, &y}), "no error");
  expect_part(error_of(k, {&x, &x}), "(data race)");
}

}  // namespace
}  // namespace rune::lower
