#include "graph_testing.h"

namespace rune::graph {
namespace {

using Violations = std::vector<std::string>;

// The violations of a graph with two f32[2] arguments, these nodes and these outputs.
Violations check(const std::string& nodes, const std::string& outputs = "") {
  return verify(
      parse("graph { %0 = placeholder index=0 : f32[2] %1 = placeholder index=1 : f32[2] " + nodes +
            " return " + outputs + "}"));
}

TEST(GraphVerify, AcceptsEveryKind) {
  EXPECT_EQ(verify(every_kind()), Violations{});
}

TEST(GraphVerify, ReportsWrongMetadata) {
  EXPECT_EQ(check("%2 = binop add %0 %1 : f64[2]"),
            Violations{"dtype is f64, expected f32, in `%2 = binop add %0 %1 : f64[2]`"});
  EXPECT_EQ(check("%2 = binop add %0 %1 : f32[3]"),
            Violations{"shape is [3], expected [2], in `%2 = binop add %0 %1 : f32[3]`"});
  EXPECT_EQ(check("%2 = binop add %0 %1 : f32[2] @\"gpu\""),
            Violations{"device is \"gpu\", expected absent, in "
                       "`%2 = binop add %0 %1 : f32[2] @\"gpu\"`"});
}

TEST(GraphVerify, ReportsOperandsThatDoNotFit) {
  EXPECT_EQ(
      check("%2 = binop add %0 : f32[2]"),
      Violations{"add: cannot take 1 operands (expected 2), in `%2 = binop add %0 : f32[2]`"});
  EXPECT_EQ(check("%2 = unary add %0 : f32[2]"),
            Violations{"add: cannot take 1 operands (it has 2), in `%2 = unary add %0 : f32[2]`"});
  EXPECT_EQ(check("%2 = reshape shape=[3] %0 : f32[3]"),
            Violations{"reshape: cannot reshape [2] to [3] (number of elements: 2 and 3), in "
                       "`%2 = reshape shape=[3] %0 : f32[3]`"});
}

TEST(GraphVerify, ReportsOperandsOutOfOrder) {
  Graph graph = parse(
      "graph { %0 = placeholder index=0 : f32[2] %1 = unary neg %0 : f32[2] "
      "%2 = unary neg %1 : f32[2] return %2 }");
  graph.nodes[1].inputs[0] = {2};
  graph.nodes[2].inputs[0] = {9};
  graph.outputs[0] = {3};
  EXPECT_EQ(verify(graph),
            (Violations{"operand %2 is not defined before its use, in `%1 = unary neg %2 : f32[2]`",
                        "operand %9 does not exist, in `%2 = unary neg %9 : f32[2]`",
                        "output 0 is %3, which does not exist"}));
  graph.nodes[1].inputs[0] = {1};
  EXPECT_EQ(verify(graph)[0],
            "operand %1 is not defined before its use, in `%1 = unary neg %1 : f32[2]`");
}

TEST(GraphVerify, ReportsPlaceholderIndices) {
  EXPECT_EQ(check("%2 = placeholder index=3 : i8[]"),
            Violations{"placeholder index is 3, expected 2, in `%2 = placeholder index=3 : i8[]`"});
  EXPECT_EQ(check("%2 = placeholder index=1 : i8[]"),
            Violations{"placeholder index is 1, expected 2, in `%2 = placeholder index=1 : i8[]`"});
  EXPECT_EQ(check("%2 = placeholder index=-1 : i8[]").size(), 2u);
}

TEST(GraphVerify, ReportsVariables) {
  const std::string n = "%2 = define_var {name=\"n\" min=1 max=4} : i64[] ";
  EXPECT_EQ(check(n + "%3 = bind value=4 %2 : i64[]"), Violations{});
  EXPECT_EQ(check(n + "%3 = bind value=5 %2 : i64[]"),
            Violations{"bind to 5 is outside [1,4], in `%3 = bind value=5 %2 : i64[]`"});
  EXPECT_EQ(
      check("%2 = unique id=1 : i64[] %3 = bind value=5 %2 : i64[]"),
      Violations{"the operand of bind is not a define_var, in `%3 = bind value=5 %2 : i64[]`"});
  EXPECT_EQ(check(n + "%3 = define_var {name=\"n\" min=0 max=4} : i64[]"),
            Violations{"variable n is declared before, with the bounds [1,4], in "
                       "`%3 = define_var {name=\"n\" min=0 max=4} : i64[]`"});
}

TEST(GraphVerify, ReportsUniqueIdsUsedTwice) {
  EXPECT_EQ(check("%2 = unique id=1 : i64[] %3 = unique id=1 : i64[]"),
            Violations{"unique id 1 is used twice, in `%3 = unique id=1 : i64[]`"});
}

TEST(GraphVerify, ReportsSourceNodesOfACoreGraph) {
  const Graph graph = parse(
      "graph { %0 = placeholder index=0 : f32[2] %1 = detach %0 : f32[2] "
      "%2 = unary neg %1 : f32[2] return %2 }");
  EXPECT_EQ(verify(graph), Violations{});
  EXPECT_EQ(verify(graph, Dialect::Core),
            Violations{"detach is a source node, which a core graph cannot have, in "
                       "`%1 = detach %0 : f32[2]`"});
}

TEST(GraphVerify, ReportsAllViolations) {
  EXPECT_EQ(check("%2 = binop add %0 %1 : i8[3] %3 = unary neg %0 : f32[1]").size(), 3u);
}

}  // namespace
}  // namespace rune::graph
