// Every violation that the verifier reports, each made by one change to a valid schedule.
#include "schedule/verify/verify.h"

#include <functional>

#include "schedule_testing.h"

namespace rune::schedule {
namespace {

struct Case {
  const char* name;
  std::function<void(Schedule&)> damage;
  const char* expected;  // part of one of the violations
};

Kernel& kernel(Schedule& s, size_t item) {
  return s.kernels[s.items[item].launch()->kernel];
}

Launch& launch(Schedule& s, size_t item) {
  return std::get<Launch>(s.items[item].operation);
}

std::vector<Stage>& stages(Schedule& s, size_t item) {
  return kernel(s, item).mutable_stages();
}

std::vector<Kernel>& phases_of(Schedule& s, size_t item) {
  return std::get<Phased>(kernel(s, item).body).phases;
}

std::optional<Combination>& combine(Schedule& s, size_t item) {
  return std::get<Staged>(kernel(s, item).body).combine;
}

Allocation& allocation(Schedule& s, Value v) {
  return *std::find_if(s.allocations.begin(), s.allocations.end(),
                       [&](const Allocation& a) { return a.value == v; });
}

// softmax(x @ y) @ z, where every product is stored: three kernels, two of them with an epilogue or
// more.
Schedule three_kernels() {
  Builder b;
  const Value x = input(b, {64, 32}), y = input(b, {32, 48}), z = input(b, {48, 16});
  const Value product = b.contract(x, y, {{1, 0}}, {});
  return schedule_of(
      b, {b.contract(b.contiguous(softmax(b, b.contiguous(product), 1)), z, {{1, 0}}, {})},
      cores());
}

// softmax(x @ y) @ z as phases of one kernel.
Schedule phases() {
  Builder b;
  const Value x = input(b, {8, 256, 64}), y = input(b, {8, 64, 256}), z = input(b, {8, 256, 64});
  const Value product = b.contract(x, y, {{2, 1}}, {{0, 0}});
  return schedule_of(b, {b.contract(softmax(b, product, 2), z, {{2, 1}}, {{0, 0}})}, cores());
}

// A row's sum by a group of threads.
Schedule on_grid() {
  Builder b;
  return schedule_of(b, {b.reduce(ReduceOp::Add, input(b, {100, 500}), {1})}, grid());
}

TEST(VerifySchedule, TheUndamagedSchedulesAreValid) {
  EXPECT_EQ(three_kernels().items.size(), 3u);
  EXPECT_EQ(kernel_at(phases(), 0).phases().size(), 3u);
  EXPECT_EQ(kernel_at(on_grid(), 0).iter.mapping.thread.size(), 1u);
}

void expect_violation(Schedule schedule, const Case& c) {
  SCOPED_TRACE(c.name);
  c.damage(schedule);
  bool found = false;
  std::string all;
  for (const std::string& violation : verify(schedule)) {
    found |= violation.find(c.expected) != std::string::npos;
    all += violation + "\n";
  }
  EXPECT_TRUE(found) << "expected `" << c.expected << "`, found:\n" << all;
  // Broken schedules still have a text, for the report.
  const std::string text = print(schedule);
  EXPECT_TRUE(equal(parse(text), schedule)) << text;
}

const Case kKernelCases[] = {
    {"size 0", [](Schedule& s) { kernel(s, 0).iter.axes[0].size = 0; }, "has size 0"},
    {"mapped nowhere", [](Schedule& s) { kernel(s, 0).iter.mapping = {}; }, "is mapped nowhere"},
    {"listed twice", [](Schedule& s) { kernel(s, 0).iter.mapping.serial.push_back(0); },
     "axis 0 (`o0`) has 2 loops for 1 tiles within a workgroup"},
    {"mapped twice", [](Schedule& s) { kernel(s, 0).iter.mapping.thread = {0}; },
     "is mapped twice"},
    {"mapped out of range", [](Schedule& s) { kernel(s, 0).iter.mapping.vec = {99}; },
     "the vec mapping names axis 99, which does not exist"},
    {"block of an inner axis",
     [](Schedule& s) { kernel(s, 0).iter.mapping.block = stages(s, 0)[0].axes; },
     "but a stage's own"},
    {"tiles missing", [](Schedule& s) { kernel(s, 0).iter.tiles.pop_back(); },
     "there are tiles for"},
    {"tile 0", [](Schedule& s) { kernel(s, 0).iter.tiles[0] = {0}; }, "has the tiles [0]"},
    {"tiles do not nest",
     [](Schedule& s) {
       Ints& tiles = kernel(s, 0).iter.tiles[1];
       tiles.insert(tiles.begin(), tiles.back() + 1);
     },
     "not a multiple of the next"},
    {"step", [](Schedule& s) { kernel(s, 0).iter.tiles[1].back() += 1; },
     "not a multiple of its lanes"},
    {"tile too large",
     [](Schedule& s) {
       Ints& tiles = kernel(s, 0).iter.tiles[1];
       tiles.insert(tiles.begin(), 1000 * tiles.back());
     },
     "for a size of"},
    {"no lanes", [](Schedule& s) { kernel(s, 0).iter.mapping.lanes = 0; },
     "there are 0 lanes and 1 threads"},
    {"threads of nothing", [](Schedule& s) { kernel(s, 0).iter.mapping.threads = 8; },
     "but no axis is mapped to threads"},
    {"prefetch out of range",
     [](Schedule& s) { kernel(s, 0).prefetches.push_back({Value{0}, 42, 2}); },
     "the prefetch names axis 42, which does not exist"},
    {"prefetch of nothing ahead",
     [](Schedule& s) {
       kernel(s, 0).prefetches.push_back({kernel(s, 0).inputs[0], std::nullopt, 0});
     },
     "a prefetch is of elements 0 ahead"},
    {"prefetch of another kernel's result",
     [](Schedule& s) {
       kernel(s, 0).prefetches.push_back({kernel(s, 2).outputs[0], std::nullopt, 2});
     },
     "which is neither an input nor an output"},
    {"prefetch of stores along an axis",
     [](Schedule& s) { kernel(s, 0).prefetches.push_back({kernel(s, 0).outputs[0], 1, 2}); },
     " has an axis"},
    {"prefetch outside of the stages",
     [](Schedule& s) { kernel(s, 0).prefetches.push_back({kernel(s, 0).inputs[0], 0, 2}); },
     "a prefetch is along axis 0 (`o0`), which is no axis of a stage"},
    {"prefetched twice",
     [](Schedule& s) {
       const Value input = kernel(s, 0).inputs[0];
       kernel(s, 0).prefetches = {{input, std::nullopt, 2}, {input, std::nullopt, 3}};
     },
     "there are two prefetches from %0"},
    {"foreign value past the caches", [](Schedule& s) { kernel(s, 0).nontemporal = {Value{0}}; },
     "%0 is written past the caches, but is no output"},
    {"combination of nothing",
     [](Schedule& s) { combine(s, 0) = Combination{ThreadCombination::SharedTree, false}; },
     "each thread has reductions of its own, but they are combined"},
    {"stage out of range", [](Schedule& s) { stages(s, 0)[0].axes.push_back(17); },
     "the stage 0 names axis 17, which does not exist"},
    {"taken before it is kept", [](Schedule& s) { stages(s, 0)[0].takes = {Value{0}}; },
     "takes %0, which no stage has kept"},
    {"kept nowhere",
     [](Schedule& s) {
       stages(s, 0)[0].keeps = StageValue{Value{0}, Ints(kernel(s, 0).iter.axes.size(), 0)};
     },
     "keeps %0, which has no scratch buffer"},
    {"scratch without keeper",
     [](Schedule& s) { kernel(s, 0).scratch.push_back({Value{0}, {64, 32}, {32, 1}}); },
     "is kept by no stage"},
    {"scratch too small",
     [](Schedule& s) {
       Scratch scratch{Value{0}, {64, 32}, {32, 1}};
       scratch.elements = 1;
       kernel(s, 0).scratch.push_back(scratch);
     },
     "the scratch buffer %0 has 1 elements, but reaches over"},
    {"scratch of another rank",
     [](Schedule& s) { kernel(s, 0).scratch.push_back({Value{0}, {64}, {1}}); },
     "the scratch buffer %0 has 1 sizes and 1 strides for 2 dimensions"},
    {"depth of a stage that stores", [](Schedule& s) { stages(s, 0).back().depth = 0; },
     "has a depth, but does more than keep a value"},
    {"no stages", [](Schedule& s) { stages(s, 0).clear(); }, "there are no stages"},
    {"empty stage", [](Schedule& s) { stages(s, 0).push_back({StageKind::Map, {}, {}}); },
     "has no values"},
    {"number of strides", [](Schedule& s) { stages(s, 0)[1].values[0].strides.pop_back(); },
     "2 strides for 3 axes"},
    {"strides leave",
     [](Schedule& s) {
       Dim& size = kernel(s, 0).iter.axes[0].size;
       size = size * 2;
     },
     "leave the value"},
    {"strides reach too little",
     [](Schedule& s) {
       Dim& size = kernel(s, 0).iter.axes[0].size;
       size = size.constant() / 2;
     },
     "reach only 1536 of 3072"},
    {"strides leave gaps", [](Schedule& s) { stages(s, 0)[1].values[0].strides[0] *= 2; },
     "leave gaps"},
    {"strides meet", [](Schedule& s) { stages(s, 0)[1].values[0].strides[0] = 1; },
     "reach some elements twice"},
    {"inner strides", [](Schedule& s) { stages(s, 0)[0].values[0].strides[2] = 2; },
     "the inner strides"},
    {"stride of another stage", [](Schedule& s) { stages(s, 0)[1].values[0].strides[2] = 1; },
     "which is an axis of another stage"},
    {"reduces no reduction", [](Schedule& s) { stages(s, 0)[0].values[0].value = Value{0}; },
     "which is not a reduction"},
    {"stage value does not exist",
     [](Schedule& s) { stages(s, 0)[0].values[0].value = Value{12345}; },
     "the stage value %12345 does not exist"},
    {"written twice in a kernel", [](Schedule& s) { stages(s, 0).push_back(stages(s, 0).back()); },
     "is written twice"},
    {"used before complete", [](Schedule& s) { std::swap(stages(s, 0)[0], stages(s, 0)[1]); },
     "before it is complete"},
    {"input missing", [](Schedule& s) { kernel(s, 0).inputs.pop_back(); },
     "which is missing from the inputs"},
    {"output missing", [](Schedule& s) { kernel(s, 0).outputs.clear(); },
     "which is missing from the outputs"},
    {"input twice", [](Schedule& s) { kernel(s, 0).inputs.push_back(kernel(s, 0).inputs[0]); },
     "is listed twice"},
    {"input not read",
     [](Schedule& s) {
       for (const Value v : kernel(s, 2).inputs)
         if (s.graph[v].shape() == Shape{48, 16}) kernel(s, 0).inputs.push_back(v);
     },
     "no stage reads the input"},
    {"output not stored",
     [](Schedule& s) { kernel(s, 0).outputs.push_back(kernel(s, 1).outputs[0]); },
     "no stage stores the output"},
    {"op missing", [](Schedule& s) { kernel(s, 0).ops.clear(); }, "missing from the ops"},
    {"op foreign", [](Schedule& s) { kernel(s, 0).ops.push_back(Value{0}); },
     "is not computed by any stage"},
};

const Case kPhaseCases[] = {
    {"another order", [](Schedule& s) { std::swap(phases_of(s, 0)[0], phases_of(s, 0)[1]); },
     "which is not an input and which no earlier phase stores"},
    {"not kept", [](Schedule& s) { kernel(s, 0).scratch.pop_back(); },
     "which must be either an output or in a scratch buffer"},
    {"kept tile too small", [](Schedule& s) { kernel(s, 0).scratch[0].elements = 16; },
     "has 16 elements, but reaches over"},
    {"other tiles", [](Schedule& s) { phases_of(s, 0)[1].iter.tiles[1][1] = 1; },
     "phase 1 has another axis 1 than the kernel, or other tiles of it"},
    {"other loops",
     [](Schedule& s) {
       std::swap(phases_of(s, 0)[2].iter.mapping.serial[0],
                 phases_of(s, 0)[2].iter.mapping.serial[1]);
     },
     "phase 2 has other workgroups or first loops than the kernel"},
    {"phase of a phase",
     [](Schedule& s) {
       const Kernel phase = phases_of(s, 0)[1];
       phases_of(s, 0)[0].body = Phased{{phase}};
     },
     "has phases itself"},
    {"damaged phase", [](Schedule& s) { phases_of(s, 0)[1].iter.mapping.vec = {99}; },
     "phase 1: the vec mapping names axis 99, which does not exist"},
    {"input that is not read",
     [](Schedule& s) { kernel(s, 0).inputs.push_back(kernel(s, 0).outputs[0]); },
     "no phase reads the input"},
    {"output that is not stored",
     [](Schedule& s) { kernel(s, 0).outputs.push_back(kernel(s, 0).inputs[0]); },
     "no phase stores the output"},
};

TEST(VerifySchedule, Phases) {
  for (const Case& c : kPhaseCases) expect_violation(phases(), c);
}

// Its text could not be read back.
TEST(VerifySchedule, SizesAreInTermsOfDeclaredVariables) {
  Schedule s = three_kernels();
  kernel(s, 0).iter.axes[0].size = Dim(SymVar{"k", 1, 48});
  const std::vector<std::string> violations = verify(s);
  EXPECT_TRUE(std::any_of(violations.begin(), violations.end(), [](const std::string& violation) {
    return violation.find("but the graph declares no k") != std::string::npos;
  }));
}

TEST(VerifySchedule, Kernels) {
  const Schedule valid = three_kernels();
  for (const Case& c : kKernelCases) expect_violation(valid, c);
}

const Case kScheduleCases[] = {
    {"kernel out of range", [](Schedule& s) { launch(s, 1).kernel = 7; },
     "item 1 launches kernel 7, but there are 3"},
    {"kernel again", [](Schedule& s) { s.kernels.push_back(s.kernels[1]); },
     "nothing launches kernel 3"},
    {"fewer ops", [](Schedule& s) { launch(s, 1).ops.pop_back(); }, "but its kernel"},
    {"other inputs", [](Schedule& s) { std::swap(launch(s, 0).inputs[0], launch(s, 0).inputs[1]); },
     "differs from the kernel that its launches have in common"},
    {"another kernel",
     [](Schedule& s) {
       s.kernels[2] = s.kernels[0];
       launch(s, 2) = launch(s, 0);
       launch(s, 2).kernel = 2;
     },
     "kernel 2 is the same as kernel 0"},
    {"arguments", [](Schedule& s) { launch(s, 0).arguments = {1}; }, "but its kernel"},
    {"argument of no launch", [](Schedule& s) { s.kernels[1].shifts = {{Value{0}, 0, 4}}; },
     "uses argument 0, but its launches have 0"},
    {"arguments of equal launches",
     [](Schedule& s) {
       s.kernels[1].arguments = {{"launch.0", 0, 1}};
       launch(s, 1).arguments = {1};
     },
     "has the arguments [1], but differs from its kernel by []"},
    {"unknown op", [](Schedule& s) { launch(s, 1).ops[0] = Value{9999}; }, "does not exist"},
    {"graph", [](Schedule& s) { s.graph.nodes[3].meta.shape = {7}; }, "%3"},
    {"order", [](Schedule& s) { std::swap(s.items[0].operation, s.items[1].operation); },
     "before an earlier item wrote it"},
    {"written twice", [](Schedule& s) { s.items[2].operation = s.items[1].operation; },
     "which item 1 wrote"},
    {"output missing", [](Schedule& s) { s.outputs.clear(); },
     "there are 0 outputs, but the graph has 1"},
    {"output not written", [](Schedule& s) { s.outputs[0] = Value{0}; }, "nothing writes %0"},
    {"output does not exist", [](Schedule& s) { s.outputs[0] = Value{999}; },
     "which does not exist"},
    {"dependency missing", [](Schedule& s) { s.dependencies.pop_back(); },
     "the dependency of item 2 on item 1 is missing"},
    {"dependency doubled", [](Schedule& s) { s.dependencies.push_back(s.dependencies[0]); },
     "is listed twice"},
    {"dependency on nothing", [](Schedule& s) { s.dependencies[0].to = 9; },
     "but there are 3 items"},
    {"dependency of other values", [](Schedule& s) { s.dependencies[0].values = {Value{0}}; },
     "is for [%0], but the items share"},
    {"cycle", [](Schedule& s) { s.dependencies.push_back({2, 0, {Value{0}}}); },
     "a cycle of dependencies"},
    {"backward", [](Schedule& s) { s.dependencies.push_back({2, 1, {}}); },
     "which does not run before it"},
    {"lifetime", [](Schedule& s) { allocation(s, kernel(s, 0).outputs[0]).last = 0; },
     "but is used from item 0 to item 1"},
    {"not allocated", [](Schedule& s) { s.allocations.pop_back(); }, "has no allocation"},
    {"allocated twice", [](Schedule& s) { s.allocations.push_back(s.allocations[0]); },
     "or two of it"},
    {"no place", [](Schedule& s) { allocation(s, kernel(s, 0).outputs[0]).offset.reset(); },
     "has no place in the arena"},
    {"leaves the arena", [](Schedule& s) { s.arena_bytes = 64; }, "leaves the arena of 64"},
    {"overlap",
     [](Schedule& s) {
       for (Allocation& a : s.allocations)
         if (a.offset) a.offset = *a.offset == 0 ? 0 : 128;
     },
     "overlap in the arena while both live"},
    {"output in the arena", [](Schedule& s) { allocation(s, kernel(s, 2).outputs[0]).offset = 0; },
     "outlives the program, but is in the arena"},
    {"peak", [](Schedule& s) { s.total_memory_usage = 1; }, "less than the arena's"},
    {"analysis missing", [](Schedule& s) { s.analysis.pop_back(); },
     "there are analyses of 2 items, not of 3"},
    {"occupancy", [](Schedule& s) { s.analysis[1].occupancy = 1.5; }, "figures out of range"},
    {"flops", [](Schedule& s) { s.analysis[1].flops = -1; }, "figures out of range"},
    {"critical path", [](Schedule& s) { s.critical_path = {0, 2}; }, "which does not depend on it"},
    {"critical path ends", [](Schedule& s) { s.critical_path = {0, 5}; },
     "names item 5, which does not exist"},
    {"no critical path", [](Schedule& s) { s.critical_path.clear(); }, "there is no critical path"},
    {"time", [](Schedule& s) { s.estimated_runtime_ns += 1; }, "but the critical path takes"},
};

TEST(VerifySchedule, Items) {
  const Schedule valid = three_kernels();
  for (const Case& c : kScheduleCases) expect_violation(valid, c);
}

const Case kGridCases[] = {
    {"threads share", [](Schedule& s) { combine(s, 0).reset(); },
     "threads share a reduction, but nothing says how they combine"},
    {"threads are not combined", [](Schedule& s) { combine(s, 0) = Combination{}; },
     "threads share a reduction, but are not combined"},
    {"outer thread without block",
     [](Schedule& s) {
       kernel(s, 0).iter.mapping.block.clear(), kernel(s, 0).iter.mapping.thread = {0, 1};
     },
     "is an outer thread axis, but no block axis"},
    {"threads over some block axes", [](Schedule& s) { kernel(s, 0).iter.mapping.thread = {0, 1}; },
     "must run over all block axes"},
    {"block tile without a loop", [](Schedule& s) { kernel(s, 0).iter.tiles[0] = {2, 1}; },
     "has no loop, but tiles of 2"},
    {"vectors without a loop",
     [](Schedule& s) {
       kernel(s, 0).iter.mapping.vec = {0};
       kernel(s, 0).iter.mapping.lanes = 4;
     },
     "has vectors but no loop"},
};

TEST(VerifySchedule, Threads) {
  const Schedule valid = on_grid();
  for (const Case& c : kGridCases) expect_violation(valid, c);
}

// The maximum of many integers, which workgroups combine: the second kernel reduces.
Schedule shared_by_groups() {
  Builder b;
  Capabilities caps = grid();
  caps.atomic_ops[static_cast<size_t>(DType::Int32)].set(static_cast<size_t>(AluOp::Max));
  const Value x = b.cast(input(b, {1 << 20}), DType::Int32);
  return schedule_of(b, {b.reduce(ReduceOp::Max, x, {0})}, caps);
}

const Case kGroupCases[] = {
    {"not begun", [](Schedule& s) { kernel(s, 1).inputs.pop_back(); },
     "which is not both an output and an input whose initial elements an earlier kernel stores"},
    {"groups share, but do not combine", [](Schedule& s) { combine(s, 1)->atomic = false; },
     "is a block axis, but a stage's own"},
    {"no threads share", [](Schedule& s) { kernel(s, 1).iter.mapping.thread.clear(); },
     "threads are combined by SharedTree, but do not share a reduction"},
};

TEST(VerifySchedule, Workgroups) {
  const Schedule valid = shared_by_groups();
  ASSERT_EQ(valid.items.size(), 2u) << print(valid);
  EXPECT_TRUE(kernel_at(valid, 1).is_atomic());
  for (const Case& c : kGroupCases) expect_violation(valid, c);
}

// A matrix product through panels in shared memory.
Schedule panels() {
  Builder b;
  const Value x = input(b, {64, 128}), y = input(b, {128, 256});
  return schedule_of(b, {b.contract(x, y, {{1, 0}}, {})}, grid());
}

MatrixPlan& plan(Schedule& s) {
  return std::get<MatrixTiled>(kernel(s, 0).body).plan;
}

const Case kPanelCases[] = {
    {"a third operand", [](Schedule& s) { plan(s).row_operand = 2; },
     "the matrix plan takes the rows from operand 2 of 2"},
    {"no groups", [](Schedule& s) { plan(s).groups = {0, 1}; }, "[0,1] groups"},
    {"one side", [](Schedule& s) { plan(s).tiles.pop_back(); }, "the matrix plan has tiles of"},
    {"another division of threads", [](Schedule& s) { plan(s).groups = {7, 11}; },
     "threads into 77 SIMD-groups"},
    {"other thread axes", [](Schedule& s) { std::swap(plan(s).rows, plan(s).columns); },
     "the matrix plan does not match the thread axes"},
    {"three copies", [](Schedule& s) { plan(s).copies = 3; },
     "the matrix plan has 3 copies of panels"},
    {"copies of nothing", [](Schedule& s) { plan(s).depth = 0; },
     "the matrix plan has 2 copies of panels of depth 0"},
    {"tiles as well", [](Schedule& s) { kernel(s, 0).iter.tiles[2] = {1}; },
     "axis 2 (`r2`) has the tiles [1], but the matrix plan divides it"},
};

TEST(VerifySchedule, Panels) {
  const Schedule valid = panels();
  for (const Case& c : kPanelCases) expect_violation(valid, c);
}

TEST(VerifySchedule, ItemsThatAreNoKernels) {
  Schedule s = three_kernels();
  s.items.push_back({Host_Callback{"f", 0, {Value{12345}}, {}}});
  const std::vector<std::string> violations = verify(s);
  ASSERT_EQ(violations.size(), 1u);
  EXPECT_EQ(violations[0], "item 3: %12345 does not exist");
}

}  // namespace
}  // namespace rune::schedule
