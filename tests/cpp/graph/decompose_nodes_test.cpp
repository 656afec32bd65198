#include "graph_testing.h"

namespace rune::graph {
namespace {

Graph run(const std::string& body, const std::string& device = "cpu") {
  const Graph graph = parse("graph {" + body + "}");
  EXPECT_EQ(verify(graph), std::vector<std::string>{}) << body;
  const Graph result = to_core(graph, device);
  EXPECT_EQ(result.outputs.size(), graph.outputs.size());
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    EXPECT_EQ(result[result.outputs[i]].dtype(), graph[graph.outputs[i]].dtype());
    EXPECT_EQ(result[result.outputs[i]].shape(), graph[graph.outputs[i]].shape());
  }
  for (const Node& node : result.nodes) EXPECT_FALSE(node.meta.device) << *node.meta.device;
  return result;
}

void expect_result(const std::string& before, const std::string& after) {
  EXPECT_EQ(print(run(before)), print(parse("graph {" + after + "}")));
}

TEST(DecomposeNodes, LeavesCoreNodes) {
  EXPECT_NE(error_of([&] { to_core(every_kind(), "metal"); }).find("cannot place a value on"),
            std::string::npos);
  EXPECT_GT(every_core_kind().outputs.size(), 50u);
}

TEST(DecomposeNodes, KeepsElementwiseGraphs) {
  const std::string body =
      "%0 = placeholder index=0 : f32[4] %1 = unary neg %0 : f32[4] %2 = contiguous %1 : f32[4] "
      "return %2";
  expect_result(body, body);
}

TEST(DecomposeNodes, AssignOfAllIsItsValue) {
  expect_result(
      "%0 = placeholder index=0 : f32[4] %1 = placeholder index=1 : f32[4]"
      "%2 = unary neg %0 : f32[4] %3 = assign boxes=[[]] %0 %1 : f32[4]"
      "%4 = unary neg %0 : f32[4] return %2 %3 %4 %0",
      "%0 = placeholder index=0 : f32[4] %1 = placeholder index=1 : f32[4]"
      "%2 = unary neg %0 : f32[4] %3 = unary neg %1 : f32[4] return %2 %1 %3 %1");
}

TEST(DecomposeNodes, AWriteThatNothingReachesIsNone) {
  expect_result(
      "%0 = placeholder index=0 : f32[4] %1 = placeholder index=1 : f32[4]"
      "%2 = assign boxes=[[]] %0 %1 : f32[4] return %0",
      "%0 = placeholder index=0 : f32[4] %1 = placeholder index=1 : f32[4] return %0");
}

TEST(DecomposeNodes, ASinkKeepsAWrite) {
  expect_result(
      "%0 = placeholder index=0 : f32[4] %1 = placeholder index=1 : f32[4]"
      "%2 = assign boxes=[[]] %0 %1 : f32[4] %3 = sink %2 : bool[0] return %0",
      "%0 = placeholder index=0 : f32[4] %1 = placeholder index=1 : f32[4]"
      "%2 = sink %1 : bool[0] %3 = const_scalar bool(false) : bool[]"
      "%4 = reshape shape=[1] %3 : bool[1] %5 = expand shape=[0] %4 : bool[0] return %1");
}

TEST(DecomposeNodes, BindAndUniqueAreConstants) {
  expect_result(
      "%0 = define_var {name=\"n\" min=0 max=9} : i64[] %1 = bind value=7 %0 : i64[]"
      "%2 = unique id=3 : i64[] return %1 %2",
      "%0 = const_scalar i64(7) : i64[] %1 = const_scalar i64(3) : i64[] return %0 %1");
}

TEST(DecomposeNodes, ShuffleTakesRunsOfLanes) {
  expect_result(
      "%0 = placeholder index=0 : f32[2,8] %1 = shuffle indices=[3,2,1,6,7] %0 : f32[2,5] return "
      "%1",
      "%0 = placeholder index=0 : f32[2,8] %1 = shrink limits=[(0,2),(1,4)] %0 : f32[2,3]"
      "%2 = flip axes=[1] %1 : f32[2,3] %3 = shrink limits=[(0,2),(6,8)] %0 : f32[2,2]"
      "%4 = cat axis=1 %2 %3 : f32[2,5] return %4");
}

TEST(DecomposeNodes, VectorizeIsACat) {
  expect_result(
      "%0 = placeholder index=0 : f32[4] %1 = vectorize %0 %0 : f32[4,2] return %1",
      "%0 = placeholder index=0 : f32[4] %1 = reshape shape=[4,1] %0 : f32[4,1]"
      "%2 = reshape shape=[4,1] %0 : f32[4,1] %3 = cat axis=1 %1 %2 : f32[4,2] return %3");
}

TEST(DecomposeNodes, IndexIsAGather) {
  expect_result(
      "%0 = placeholder index=0 : f32[2,3] %1 = placeholder index=1 : i32[4]"
      "%2 = index %0 %1 : f32[4] return %2",
      "%0 = placeholder index=0 : f32[2,3] %1 = placeholder index=1 : i32[4]"
      "%2 = reshape shape=[6] %0 : f32[6] %3 = gather axis=0 %2 %1 : f32[4] return %3");
}

TEST(DecomposeNodes, ThreefryIsLinearInItsRounds) {
  const Graph result =
      run("%0 = placeholder index=0 : u32[5,2] %1 = placeholder index=1 : u32[5,2]"
          "%2 = threefry %0 %1 : u32[5,2] return %2");
  EXPECT_LT(result.size(), 400u);
}

TEST(DecomposeNodes, DeviceNamesOfTheProgram) {
  const std::string body =
      "%0 = placeholder index=0 : f32[4] @\"cpu\" %1 = copy device=\"cpu:0\" clone=true %0 : "
      "f32[4] "
      "@\"cpu:0\" return %1";
  run(body, "cpu");
  run(body, "cpu:0");
  EXPECT_NE(error_of([&] { run(body, "metal"); }).find("cannot place a value on cpu "),
            std::string::npos);
  // For another device of the kind, nothing is to be done there.
  const Graph moved = to_core(parse("graph {" + body + "}"), "cpu:1");
  EXPECT_FALSE(moved[moved.outputs[0]].meta.device);
}

TEST(DecomposeNodes, BufferMustBeAssignedBeforeItIsRead) {
  const std::string part =
      "%0 = placeholder index=0 : f32[2] %1 = buffer size=4 device=\"\" : f32[4]"
      "%2 = assign boxes=[[(0,2)]] %1 %0 : f32[4]";
  EXPECT_NE(error_of([&] { run(part + "return %2"); }).find("buffer: cannot read `%1 = buffer"),
            std::string::npos);
  run(part + "%3 = assign boxes=[[(2,4)]] %2 %0 : f32[4] return %3");
  run(part +
      "%3 = assign boxes=[[(1,3)],[(2,4)]] %2 %0 %0 : f32[4] %4 = sink %3 : bool[0] return %1");
}

}  // namespace
}  // namespace rune::graph
