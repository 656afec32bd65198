// The pass table and its runner, the registry of targets, and whole programs: compiled for every
// device that interprets, they compute what the graph says.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "../schedule/random_program.h"
#include "base/error.h"
#include "driver/compile.h"
#include "driver/explain.h"
#include "driver/pipeline.h"
#include "driver/targets.h"

namespace rune::driver {
namespace {

using schedule::Tensor;

template <class F>
std::string refusal(ErrorKind kind, F&& f) {
  try {
    f();
  } catch (const UserError& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    return e.what();
  }
  return "";
}

constexpr const char* kGraph = R"(graph {
  %0 = placeholder index=0 : f32[4]
  %1 = unary neg %0 : f32[4]
  %2 = unary neg %1 : f32[4]
  %3 = binop add %2 %0 : f32[4]
  return %3
}
)";

TEST(Pipeline, PassesFollowEachOther) {
  std::set<std::string> names;
  Stage stage = Stage::Source;
  for (const Pass& pass : pipeline()) {
    EXPECT_TRUE(names.insert(pass.name).second) << pass.name;
    EXPECT_EQ(pass.from, stage) << pass.name;
    EXPECT_GE(pass.to, pass.from) << pass.name;
    EXPECT_EQ(&find_pass(pass.name), &pass);
    stage = pass.to;
  }
  EXPECT_EQ(stage, Stage::Lowered);
  const std::string text = refusal(ErrorKind::Value, [] { find_pass("bogus"); });
  EXPECT_NE(text.find("cannot find `bogus`"), std::string::npos) << text;
  for (const std::string& name : names) EXPECT_NE(text.find(name), std::string::npos) << name;
}

TEST(Pipeline, StopsAfterAPassAndGoesOn) {
  const Capabilities& caps = find_target("interpreter").capabilities();
  State state = parse(kGraph, caps);
  EXPECT_EQ(state.stage, Stage::Source);
  EXPECT_TRUE(verify(state).empty());
  EXPECT_EQ(print(state), kGraph);
  run_pipeline(state, "simplify");
  EXPECT_EQ(state.stage, Stage::Core);
  EXPECT_NE(print(state).find("binop add %0 %0"), std::string::npos) << print(state);
  // The text of a schedule is a program to go on with, to the same kernels.
  run_pipeline(state, "plan_memory");
  EXPECT_EQ(state.stage, Stage::Schedule);
  State read = parse(print(state), caps);
  EXPECT_EQ(read.stage, Stage::Schedule);
  for (State* one : {&state, &read}) {
    run_pass(find_pass("lower"), *one);
    run_pipeline(*one);
  }
  EXPECT_EQ(state.stage, Stage::Lowered);
  EXPECT_EQ(print(read), print(state));
  EXPECT_EQ(print(parse(print(state), caps)), print(state));
  EXPECT_THROW(run_pass(find_pass("fuse"), state), InternalError);
  State other = parse(kGraph, caps);
  EXPECT_NE(refusal(ErrorKind::Value, [&] { run_pipeline(other, "bogus"); }), "");
}

TEST(Pipeline, TellsTheIRsApart) {
  const Capabilities& caps = find_target("null").capabilities();
  EXPECT_EQ(refusal(ErrorKind::Parse, [&] { parse("grap {", caps); }),
            "parse: expected `graph`, `schedule` or `kernel` (line 1, column 1, at `grap {`)");
  State state = parse(kGraph, caps);
  state.graph.outputs[0].id = 99;
  EXPECT_FALSE(verify(state).empty());
}

TEST(Targets, AreFoundByName) {
  for (const std::string& name : target_names()) {
    const Target& target = find_target(name);
    EXPECT_EQ(target.name, name);
    EXPECT_EQ(&find_target(name + ":3"), &target);
    EXPECT_TRUE(target.render);
  }
  EXPECT_NE(refusal(ErrorKind::Value, [] { find_target("gpu"); }).find("the devices are cpu, "),
            std::string::npos);
  for (const char* bad : {"cpu:", "cpu:x", "cpu:-1", "cpu:1x"})
    EXPECT_NE(refusal(ErrorKind::Value, [&] { find_target(bad); }).find("cannot read"),
              std::string::npos)
        << bad;
  EXPECT_EQ(open_device("interpreter"), open_device("interpreter"));
  EXPECT_NE(open_device("interpreter"), open_device("interpreter:1"));
  EXPECT_NE(refusal(ErrorKind::Runtime, [] { open_device("test-cores"); }).find("only be rendered"),
            std::string::npos);
}

// Metal's and CUDA's, as the renderers get them.
TEST(Targets, InterpretedOnesHaveTheOthersCapabilities) {
  for (const std::string name : {"metal", "cuda"}) {
    Capabilities caps = find_target(name + "-interpreted").capabilities();
    EXPECT_EQ(caps.name, name + "-interpreted");
    EXPECT_TRUE(caps.languages.empty());
    caps.name = name;
    caps.languages = find_target(name).capabilities().languages;
    EXPECT_TRUE(caps == find_target(name).capabilities());
  }
}

// The outputs of a program that was lowered for the device.
std::vector<Tensor> run(const graph::Graph& graph, const std::string& device,
                        std::vector<Tensor> inputs) {
  const Lowered lowered = driver::lower(graph, device);
  EXPECT_FALSE(explain(lowered).empty());
  const auto executable = compile(lowered, device);
  std::vector<Tensor> outputs;
  for (const graph::Value v : graph.outputs) {
    outputs.push_back({constants_of(graph[v].shape()), {}});
    outputs.back().data.resize(max_elements(graph[v].shape()), 0x5a5a);
  }
  std::vector<void*> in, out;
  for (Tensor& tensor : inputs) in.push_back(tensor.data.data());
  for (Tensor& tensor : outputs) out.push_back(tensor.data.data());
  const std::vector<Tensor> before = inputs;
  executable->run(in, out);
  executable->device->synchronize();
  EXPECT_EQ(inputs, before);
  return outputs;
}

class Programs : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Devices, Programs,
                         testing::Values("interpreter", "metal-interpreted", "cuda-interpreted",
                                         "interpreter-delayed"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST_P(Programs, ComputeWhatGraphsSay) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    schedule::RandomProgram program(seed);
    for (int i = 0; i < 2; ++i) program.add_input();
    for (uint32_t i = 0; i < 4 + seed % 12; ++i) program.add_any();
    graph::Graph graph = program.builder().graph();
    graph.outputs = program.pick_outputs();
    const std::vector<Tensor> values = evaluate_graph(graph, program.inputs());
    const std::vector<Tensor> found = run(graph, GetParam(), program.inputs());
    for (size_t i = 0; i < found.size(); ++i)
      ASSERT_EQ(found[i].data, values[graph.outputs[i].id].data)
          << "seed " << seed << ", output " << i << " of\n"
          << graph::print(graph);
  }
}

// Reductions by all threads of a group, whatever the device has for them.
TEST_P(Programs, GroupsReduceWithoutRaces) {
  for (const ReduceOp op : {ReduceOp::Add, ReduceOp::Max, ReduceOp::Min, ReduceOp::Prod})
    for (const int64_t size : {65, 300, 4099}) {
      graph::Builder builder;
      const graph::Value x = builder.placeholder(DType::Int64, {3, size});
      const graph::Value sums = builder.reduce(op, x, {1});
      graph::Graph graph = builder.graph();
      graph.outputs = {sums};
      const std::vector<Tensor> inputs = {schedule::arange({3, size}, -size)};
      const std::vector<Tensor> values = evaluate_graph(graph, inputs);
      ASSERT_EQ(run(graph, GetParam(), inputs)[0].data, values[sums.id].data)
          << name_of(op) << " of " << size;
    }
}

TEST(DelayedDevice, RunsWhatSomebodyWaitsFor) {
  const graph::Graph graph = parse(kGraph, find_target("null").capabilities()).graph;
  const auto executable =
      compile(driver::lower(graph, "interpreter-delayed"), "interpreter-delayed");
  float in[4] = {1, 2, 3, 4}, out[4] = {};
  void* const inputs[] = {in};
  void* const outputs[] = {out};
  executable->run(inputs, outputs);
  EXPECT_EQ(out[3], 0);
  in[3] = 5;  // too early: the launch has not read it yet
  executable->device->synchronize();
  EXPECT_EQ(out[3], 10);
  // Memory that nobody has written, and memory that has been freed, tell.
  runtime::Allocator& allocator = executable->device->allocator();
  EXPECT_TRUE(allocator.defers_frees());
  auto* const memory = static_cast<unsigned char*>(allocator.allocate(64));
  EXPECT_EQ(memory[0], 0xa5);
  EXPECT_EQ(memory[63], 0xa5);
  void* const there[] = {memory};
  executable->run(inputs, there);
  allocator.deallocate(memory, 64);
  float copied[4] = {};
  executable->device->copy_out(copied, out, sizeof copied);  // waits for all of that
  EXPECT_EQ(copied[3], 10);
}

}  // namespace
}  // namespace rune::driver
