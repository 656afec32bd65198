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
  return std::get<Kernel>(s.items[item].operation);
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
  EXPECT_EQ(kernel_at(phases(), 0).phases.size(), 3u);
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
    {"no size", [](Schedule& s) { kernel(s, 0).iter.axes[0].size.reset(); },
     "axis 0 (`o0`) has no size"},
    {"size 0", [](Schedule& s) { kernel(s, 0).iter.axes[0].size = 0; }, "has size 0"},
    {"role", [](Schedule& s) { kernel(s, 0).iter.axes[0].role = AxisRole::Reduction; },
     "but no stage reduces it"},
    {"mapped nowhere", [](Schedule& s) { kernel(s, 0).iter.mapping = {}; }, "is mapped nowhere"},
    {"listed twice", [](Schedule& s) { kernel(s, 0).iter.mapping.serial.push_back(0); },
     "axis 0 (`o0`) has 2 loops for 1 tiles within a workgroup"},
    {"mapped twice", [](Schedule& s) { kernel(s, 0).iter.mapping.thread = {0}; },
     "is mapped twice"},
    {"mapped out of range", [](Schedule& s) { kernel(s, 0).iter.mapping.vec = {99}; },
     "the vec mapping names axis 99, which does not exist"},
    {"block of an inner axis",
     [](Schedule& s) { kernel(s, 0).iter.mapping.block = kernel(s, 0).stages[0].axes; },
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
    {"step", [](Schedule& s) { kernel(s, 0).iter.tiles[2].back() += 1; },
     "not unroll factor times lanes"},
    {"tile too large",
     [](Schedule& s) {
       Ints& tiles = kernel(s, 0).iter.tiles[1];
       tiles.insert(tiles.begin(), 1000 * tiles.back());
     },
     "for a size of"},
    {"launch", [](Schedule& s) { kernel(s, 0).context.global_dims[0] += 7; },
     "but the block axes need"},
    {"launch dimensions", [](Schedule& s) { kernel(s, 0).context.local_dims = {1}; },
     "launch dimensions are [1]"},
    {"threads of nothing", [](Schedule& s) { kernel(s, 0).context.local_dims[0] = 8; },
     "but no axis is mapped to threads"},
    {"hint out of range",
     [](Schedule& s) { kernel(s, 0).hints.push_back({HintKind::Unroll, 42, std::nullopt, 2}); },
     "the Unroll hint names axis 42, which does not exist"},
    {"hint amount",
     [](Schedule& s) { kernel(s, 0).hints.push_back({HintKind::Pipeline, 0, std::nullopt, 0}); },
     "has the amount 0"},
    {"hint without axis",
     [](Schedule& s) {
       kernel(s, 0).hints.push_back({HintKind::Unroll, std::nullopt, Value{0}, 2});
     },
     "needs an axis and nothing else"},
    {"hint without value",
     [](Schedule& s) { kernel(s, 0).hints.push_back({HintKind::Prefetch, 0, std::nullopt, 2}); },
     "needs a value and nothing else"},
    {"prefetch of a result",
     [](Schedule& s) {
       const Value result = kernel(s, 0).outputs[0].buf_var;
       kernel(s, 0).hints.push_back({HintKind::Prefetch, 1, result, 2});
     },
     "which is no input"},
    {"prefetch outside of the stages",
     [](Schedule& s) {
       const Value input = kernel(s, 0).inputs[0].buf_var;
       kernel(s, 0).hints.push_back({HintKind::Prefetch, 0, input, 2});
     },
     "a Prefetch hint names axis 0 (`o0`), which is no stage's"},
    {"hint twice",
     [](Schedule& s) {
       kernel(s, 0).hints.push_back({HintKind::Pipeline, 0, std::nullopt, 2});
       kernel(s, 0).hints.push_back({HintKind::Pipeline, 0, std::nullopt, 2});
     },
     "has two Pipeline hints"},
    {"hint for a foreign value",
     [](Schedule& s) {
       kernel(s, 0).hints.push_back({HintKind::Nontemporal, std::nullopt, Value{0}, 1});
     },
     "which is no buffer that it could be for"},
    {"vectors without hint",
     [](Schedule& s) {
       std::erase_if(kernel(s, 0).hints,
                     [](const LoopHint& h) { return h.kind == HintKind::Vectorize; });
     },
     "does not match the Vectorize hints"},
    {"plan missing", [](Schedule& s) { kernel(s, 0).reduce.reset(); },
     "there is no reduction plan"},
    {"plan out of range", [](Schedule& s) { kernel(s, 0).reduce->axes = {9}; },
     "the reduction plan names axis 9, which does not exist"},
    {"plan for others", [](Schedule& s) { kernel(s, 0).reduce->axes = {0}; },
     "but the stages reduce [2]"},
    {"plan across threads",
     [](Schedule& s) { kernel(s, 0).reduce->inter_thread = InterThread::Atomic; },
     "but each thread has reductions of its own"},
    {"stage out of range", [](Schedule& s) { kernel(s, 0).stages[0].axes.push_back(17); },
     "the stage 0 names axis 17, which does not exist"},
    {"taken before it is kept", [](Schedule& s) { kernel(s, 0).stages[0].takes = {Value{0}}; },
     "takes %0, which no stage has kept"},
    {"kept nowhere",
     [](Schedule& s) {
       kernel(s, 0).stages[0].keeps = StageValue{Value{0}, Ints(kernel(s, 0).iter.axes.size(), 0)};
     },
     "keeps %0, which has no scratch buffer"},
    {"scratch without keeper",
     [](Schedule& s) { kernel(s, 0).scratch.push_back(kernel(s, 0).inputs[0]); },
     "is kept by no stage"},
    {"scratch too small",
     [](Schedule& s) {
       kernel(s, 0).scratch.push_back(kernel(s, 0).inputs[0]);
       kernel(s, 0).scratch[0].alloc.size_bytes = 4;
     },
     "the scratch buffer %0 has 4 bytes, but reaches over"},
    {"depth of a stage that stores", [](Schedule& s) { kernel(s, 0).stages.back().depth = 0; },
     "has a depth, but does more than to keep a value"},
    {"no stages",
     [](Schedule& s) {
       kernel(s, 0).stages.clear();
       for (Axis& axis : kernel(s, 0).iter.axes) axis.role = AxisRole::Normal;
     },
     "there are no stages"},
    {"empty stage", [](Schedule& s) { kernel(s, 0).stages.push_back({StageKind::Map, {}, {}}); },
     "has no values"},
    {"number of strides", [](Schedule& s) { kernel(s, 0).stages[1].values[0].strides.pop_back(); },
     "2 strides for 3 axes"},
    {"strides leave", [](Schedule& s) { *kernel(s, 0).iter.axes[0].size *= 2; }, "leave the value"},
    {"strides reach too little", [](Schedule& s) { *kernel(s, 0).iter.axes[0].size /= 2; },
     "reach only 1536 of 3072"},
    {"strides leave gaps", [](Schedule& s) { kernel(s, 0).stages[1].values[0].strides[0] *= 2; },
     "leave gaps"},
    {"strides meet", [](Schedule& s) { kernel(s, 0).stages[1].values[0].strides[0] = 1; },
     "reach some elements twice"},
    {"inner strides", [](Schedule& s) { kernel(s, 0).stages[0].values[0].strides[2] = 2; },
     "the inner strides"},
    {"stride of another stage",
     [](Schedule& s) { kernel(s, 0).stages[1].values[0].strides[2] = 1; },
     "which is another stage's"},
    {"reduces no reduction", [](Schedule& s) { kernel(s, 0).stages[0].values[0].value = Value{0}; },
     "which is no reduction"},
    {"stage value does not exist",
     [](Schedule& s) { kernel(s, 0).stages[0].values[0].value = Value{12345}; },
     "the stage value %12345 does not exist"},
    {"written twice in a kernel",
     [](Schedule& s) { kernel(s, 0).stages.push_back(kernel(s, 0).stages.back()); },
     "is written twice"},
    {"used before complete",
     [](Schedule& s) { std::swap(kernel(s, 0).stages[0], kernel(s, 0).stages[1]); },
     "before it is complete"},
    {"input missing", [](Schedule& s) { kernel(s, 0).inputs.pop_back(); },
     "which is missing from the inputs"},
    {"output missing", [](Schedule& s) { kernel(s, 0).outputs.clear(); },
     "which is missing from the outputs"},
    {"input twice", [](Schedule& s) { kernel(s, 0).inputs.push_back(kernel(s, 0).inputs[0]); },
     "is listed twice"},
    {"input not read",
     [](Schedule& s) {
       BufferInfo buffer = kernel(s, 2).inputs[0];
       for (const BufferInfo& b : kernel(s, 2).inputs)
         if (b.layout.shape == Shape{48, 16}) buffer = b;
       kernel(s, 0).inputs.push_back(buffer);
     },
     "no stage reads the input"},
    {"output not stored",
     [](Schedule& s) { kernel(s, 0).outputs.push_back(kernel(s, 1).outputs[0]); },
     "no stage stores the output"},
    {"dtype", [](Schedule& s) { kernel(s, 0).inputs[0].dtype = DType::Int8; },
     "is i8, but the graph has f32"},
    {"shape", [](Schedule& s) { kernel(s, 0).inputs[0].layout.shape = {1}; }, "has the shape [1]"},
    {"layout", [](Schedule& s) { kernel(s, 0).inputs[0].layout.strides = {1}; },
     "1 strides for 2 dimensions"},
    {"bytes", [](Schedule& s) { kernel(s, 0).inputs[0].alloc.size_bytes = 8; },
     "has 8 bytes, but needs 8192"},
    {"direction", [](Schedule& s) { kernel(s, 0).inputs[0].is_input = false; },
     "is not marked as such"},
    {"op missing", [](Schedule& s) { kernel(s, 0).ops.clear(); }, "missing from the ops"},
    {"op foreign", [](Schedule& s) { kernel(s, 0).ops.push_back(Value{0}); },
     "is not computed by any stage"},
};

const Case kPhaseCases[] = {
    {"stages as well", [](Schedule& s) { kernel(s, 0).stages.emplace_back(); },
     "there are phases and stages"},
    {"another order",
     [](Schedule& s) { std::swap(kernel(s, 0).phases[0], kernel(s, 0).phases[1]); },
     "which is no input and which no phase before it stores"},
    {"not kept", [](Schedule& s) { kernel(s, 0).scratch.pop_back(); },
     "which must be either an output or in a scratch buffer"},
    {"kept tile too small", [](Schedule& s) { kernel(s, 0).scratch[0].alloc.size_bytes = 64; },
     "has 64 bytes, but reaches over"},
    {"other tiles", [](Schedule& s) { kernel(s, 0).phases[1].iter.tiles[1][1] = 1; },
     "phase 1 has another axis 1 than the kernel, or other tiles of it"},
    {"other loops",
     [](Schedule& s) {
       std::swap(kernel(s, 0).phases[2].iter.mapping.serial[0],
                 kernel(s, 0).phases[2].iter.mapping.serial[1]);
     },
     "phase 2 has other workgroups or first loops than the kernel"},
    {"phase of a phase",
     [](Schedule& s) { kernel(s, 0).phases[0].phases = {kernel(s, 0).phases[1]}; },
     "has phases itself"},
    {"damaged phase", [](Schedule& s) { kernel(s, 0).phases[1].iter.mapping.vec = {99}; },
     "phase 1: the vec mapping names axis 99, which does not exist"},
    {"input that is not read",
     [](Schedule& s) {
       BufferInfo buffer = kernel(s, 0).outputs[0];
       buffer.is_input = true, buffer.is_output = false;
       kernel(s, 0).inputs.push_back(buffer);
     },
     "no phase reads the input"},
    {"output that is not stored",
     [](Schedule& s) {
       BufferInfo buffer = kernel(s, 0).inputs[0];
       buffer.is_input = false, buffer.is_output = true;
       kernel(s, 0).outputs.push_back(buffer);
     },
     "no phase stores the output"},
};

TEST(VerifySchedule, Phases) {
  for (const Case& c : kPhaseCases) expect_violation(phases(), c);
}

TEST(VerifySchedule, Kernels) {
  const Schedule valid = three_kernels();
  for (const Case& c : kKernelCases) expect_violation(valid, c);
}

const Case kScheduleCases[] = {
    {"number", [](Schedule& s) { s.items[1].item_id = 7; }, "has the number 7"},
    {"name", [](Schedule& s) { kernel(s, 1).kernel_name = kernel(s, 0).kernel_name; },
     "another kernel has this name"},
    {"graph", [](Schedule& s) { s.graph.nodes[3].meta.shape = {7}; }, "%3"},
    {"order", [](Schedule& s) { std::swap(s.items[0].operation, s.items[1].operation); },
     "before an earlier item wrote it"},
    {"written twice",
     [](Schedule& s) {
       s.items[2].operation = s.items[1].operation;
       kernel(s, 2).kernel_name = "other";
     },
     "which item 1 wrote"},
    {"output missing", [](Schedule& s) { s.outputs.clear(); },
     "there are 0 outputs, but the graph has 1"},
    {"output not written", [](Schedule& s) { s.outputs[0] = Value{0}; }, "nothing writes %0"},
    {"output does not exist", [](Schedule& s) { s.outputs[0] = Value{999}; },
     "which does not exist"},
    {"dependency missing", [](Schedule& s) { s.dependencies.pop_back(); },
     "the dependency of item 2 on item 1 is missing"},
    {"dependency doubled", [](Schedule& s) { s.dependencies.push_back(s.dependencies[0]); },
     "is doubled"},
    {"dependency on nothing", [](Schedule& s) { s.dependencies[0].dep_to = 9; },
     "but there are 3 items"},
    {"dependency of other values", [](Schedule& s) { s.dependencies[0].dep_vars = {Value{0}}; },
     "is for [%0], but the items share"},
    {"cycle",
     [](Schedule& s) {
       s.dependencies.push_back({2, 0, {}, DependencyKind::Control});
       s.items[2].dependents = s.items[0].depends_on = {};
     },
     "a cycle of dependencies"},
    {"backward", [](Schedule& s) { s.dependencies.push_back({2, 1, {}, DependencyKind::Control}); },
     "which does not run before it"},
    {"depends_on", [](Schedule& s) { s.items[1].depends_on.clear(); }, "depends_on is []"},
    {"dependents", [](Schedule& s) { s.items[0].dependents = {2}; }, "dependents is [2]"},
    {"lifetime",
     [](Schedule& s) {
       const Value v = kernel(s, 0).outputs[0].buf_var;
       for (size_t i = 0; i < 2; ++i)
         for (auto* list : {&kernel(s, i).inputs, &kernel(s, i).outputs})
           for (BufferInfo& b : *list)
             if (b.buf_var == v) b.alloc.lifetime = {0, 0};
     },
     "but is used from item 0 to item 1"},
    {"allocated differently", [](Schedule& s) { kernel(s, 1).inputs[0].alloc.offset = 1 << 20; },
     "is allocated differently from before"},
    {"no place", [](Schedule& s) { kernel(s, 0).outputs[0].alloc.offset.reset(); },
     "has no place in the arena"},
    {"leaves the arena", [](Schedule& s) { s.arena_bytes = 64; }, "leaves the arena of 64"},
    {"overlap",
     [](Schedule& s) {
       for (size_t i = 0; i < 3; ++i)
         for (auto* list : {&kernel(s, i).inputs, &kernel(s, i).outputs})
           for (BufferInfo& b : *list)
             if (b.alloc.offset) b.alloc.offset = b.alloc.offset == 0 ? 0 : 128;
     },
     "overlap in the arena while both live"},
    {"alias group",
     [](Schedule& s) {
       for (size_t i = 0; i < 3; ++i)
         for (auto* list : {&kernel(s, i).inputs, &kernel(s, i).outputs})
           for (BufferInfo& b : *list)
             if (b.alloc.offset) b.alloc.alias_group = 0;
     },
     "but not at its place"},
    {"output in the arena", [](Schedule& s) { kernel(s, 2).outputs[0].alloc.offset = 0; },
     "outlives the program, but is in the arena"},
    {"peak", [](Schedule& s) { s.total_memory_usage = 1; }, "less than the arena's"},
    {"analysis missing", [](Schedule& s) { s.analysis.pop_back(); },
     "there are analyses of 2 items, not of 3"},
    {"analysis of another", [](Schedule& s) { s.analysis[1].item_id = 0; },
     "analysis 1 is of item 0"},
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
    {"threads share", [](Schedule& s) { kernel(s, 0).reduce->inter_thread = InterThread::None; },
     "but threads share a reduction"},
    {"moments of none",
     [](Schedule& s) { kernel(s, 0).reduce->intra_thread = IntraThread::Welford; },
     "the reduction plan says Welford, but no stage reduces deviations and their squares"},
    {"completed by none",
     [](Schedule& s) { kernel(s, 0).reduce->inter_thread = InterThread::GridReduce; },
     "the reduction plan says GridReduce, but no other kernel completes the reductions"},
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
       kernel(s, 0).hints.push_back({HintKind::Vectorize, 0, std::nullopt, 4});
     },
     "has vectors but no loop"},
    {"two widths",
     [](Schedule& s) {
       kernel(s, 0).hints.push_back({HintKind::Vectorize, 0, std::nullopt, 4});
       kernel(s, 0).hints.push_back({HintKind::Vectorize, 1, std::nullopt, 8});
     },
     "has vectors of 4 lanes, others of 8"},
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
     "which is not both an input, that an earlier kernel began, and an output"},
    {"groups share, but do not combine",
     [](Schedule& s) { kernel(s, 1).reduce->inter_thread = InterThread::SharedTree; },
     "is a block axis, but a stage's own"},
    {"no threads share", [](Schedule& s) { kernel(s, 1).iter.mapping.thread.clear(); },
     "but each thread has reductions of its own"},
};

TEST(VerifySchedule, Workgroups) {
  const Schedule valid = shared_by_groups();
  ASSERT_EQ(valid.items.size(), 2u) << print(valid);
  EXPECT_EQ(kernel_at(valid, 1).reduce->inter_thread, InterThread::Atomic);
  for (const Case& c : kGroupCases) expect_violation(valid, c);
}

// A matrix product through panels in shared memory.
Schedule panels() {
  Builder b;
  const Value x = input(b, {64, 128}), y = input(b, {128, 256});
  return schedule_of(b, {b.contract(x, y, {{1, 0}}, {})}, grid());
}

const Case kPanelCases[] = {
    {"a third operand", [](Schedule& s) { kernel(s, 0).matrix->row_operand = 2; },
     "the matrix plan takes the rows from operand 2 of 2"},
    {"one panel", [](Schedule& s) { kernel(s, 0).scratch.pop_back(); },
     "the matrix plan has 1 panels and the tiles [16,1] of the reduced axis"},
    {"no depth", [](Schedule& s) { kernel(s, 0).iter.tiles[2] = {1}; },
     "the matrix plan has 2 panels and the tiles [1] of the reduced axis"},
    {"no panels", [](Schedule& s) { kernel(s, 0).scratch.clear(); },
     "axis 2 has the tiles [16,1], but the matrix plan needs 1"},
    {"another shape", [](Schedule& s) { kernel(s, 0).scratch[0].layout.strides[0] -= 1; },
     "panel 0 of the matrix plan is not 32 x 16 of f32 in rows of 17, shared by the workgroup"},
    {"another dtype", [](Schedule& s) { kernel(s, 0).scratch[1].dtype = DType::Float64; },
     "panel 1 of the matrix plan is not 16 x "},
    {"room for one copy", [](Schedule& s) { kernel(s, 0).scratch[0].alloc.size_bytes /= 2; },
     "panel 0 of the matrix plan has 2176 bytes, but 2 copies of it need 4352"},
    {"another axis is pipelined", [](Schedule& s) { kernel(s, 0).hints[0].axis = 0; },
     "axis 0 (`o0`) has a Pipeline hint of 2, not 1 or 2 on the reduced axis"},
    {"three copies",
     [](Schedule& s) {
       kernel(s, 0).hints[0].amount = 3;
       for (BufferInfo& buffer : kernel(s, 0).scratch) buffer.alloc.size_bytes *= 2;
     },
     "has a Pipeline hint of 3, not 1 or 2"},
};

TEST(VerifySchedule, Panels) {
  const Schedule valid = panels();
  for (const Case& c : kPanelCases) expect_violation(valid, c);
  Schedule reduction = on_grid();
  kernel(reduction, 0).hints.push_back({HintKind::Pipeline, 1, std::nullopt, 2});
  expect_violation(reduction, {"no panels to pipeline", [](Schedule&) {},
                               "has a Pipeline hint, but the kernel no panels"});
}

TEST(VerifySchedule, ItemsThatAreNoKernels) {
  Schedule s = three_kernels();
  ScheduleItem item;
  item.item_id = 3;
  BufferInfo missing;
  missing.buf_var = {12345};
  item.operation = Host_Callback{0, "f", 0, {missing}, {}};
  s.items.push_back(item);
  const std::vector<std::string> violations = verify(s);
  ASSERT_EQ(violations.size(), 1u);
  EXPECT_EQ(violations[0], "item 3: %12345 does not exist");
}

}  // namespace
}  // namespace rune::schedule
