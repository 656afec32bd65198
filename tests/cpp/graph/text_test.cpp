#include <set>

#include "graph_testing.h"

namespace rune::graph {
namespace {

TEST(GraphText, ReadsBackEveryKind) {
  const Graph graph = every_kind();
  std::set<NodeKind> kinds;
  for (const Node& node : graph.nodes) kinds.insert(node.kind());
  EXPECT_EQ(kinds.size(), static_cast<size_t>(kNumNodeKinds));
  expect_valid(graph);
}

TEST(GraphText, IsTheOneOfTheHeader) {
  Builder b;
  const Value sum = b.reduce(ReduceOp::Add, b.placeholder(DType::Float32, {8, 4}), {1});
  b.set_outputs({b.alu(AluOp::Mul, {sum, sum})});
  EXPECT_EQ(print(b.graph()),
            "graph {\n"
            "  %0 = placeholder index=0 : f32[8,4]\n"
            "  %1 = reduce_axis add axes=[1] %0 : f32[8,1]\n"
            "  %2 = binop mul %1 %1 : f32[8,1]\n"
            "  return %2\n"
            "}\n");
  EXPECT_EQ(print_node(b.graph(), sum), "%1 = reduce_axis add axes=[1] %0 : f32[8,1]");
}

TEST(GraphText, ReadsBackScalarsOfEveryDtype) {
  Builder b;
  for (int d = 0; d < kNumDTypes; ++d) {
    const DType dtype = static_cast<DType>(d);
    for (const Scalar& s : {Scalar::lowest(dtype), Scalar::highest(dtype), Scalar::of(dtype, 0.1),
                            Scalar::of(dtype, -0.0), Scalar::of(dtype, 1)})
      b.constant(s);
    if (is_float(dtype)) b.constant(Scalar::of(dtype, std::numeric_limits<double>::quiet_NaN()));
  }
  expect_valid(b.graph());
}

TEST(GraphText, PrintsTheDeviceButNotTheLocation) {
  Builder b;
  b.set_location("user.py:3");
  const Value x = b.add(Placeholder{0}, {}, {DType::Int8, {}, "cpu:1"});
  EXPECT_EQ(b[x].location, "user.py:3");
  b.set_outputs({x, x});
  EXPECT_EQ(print(b.graph()),
            "graph {\n  %0 = placeholder index=0 : i8[] @\"cpu:1\"\n  return %0 %0\n}\n");
  expect_valid(b.graph());
}

TEST(GraphText, ReadsCommentsAndAGraphWithoutNodes) {
  const Graph graph = parse("; a comment\ngraph { ; another\n return\n}\n; the end\n");
  EXPECT_EQ(graph.size(), 0u);
  EXPECT_TRUE(graph.outputs.empty());
}

TEST(GraphText, LeavesTheLexerBehindTheGraph) {
  text::Lexer lexer("graph { return } next");
  parse(lexer);
  EXPECT_EQ(lexer.ident(), "next");
}

TEST(GraphText, ComparesPayloadInputsTypeAndOutputs) {
  const auto one = [](const char* node, const char* outputs) {
    return parse(std::string("graph { %0 = placeholder index=0 : f32[2]\n"
                             "%1 = placeholder index=1 : f32[2]\n") +
                 node + " return " + outputs + "}");
  };
  const Graph base = one("%2 = binop add %0 %1 : f32[2]", "%2");
  EXPECT_TRUE(equal(base, base));
  EXPECT_FALSE(equal(base, one("%2 = binop mul %0 %1 : f32[2]", "%2")));
  EXPECT_FALSE(equal(base, one("%2 = binop add %0 %0 : f32[2]", "%2")));
  EXPECT_FALSE(equal(base, one("%2 = binop add %0 %1 : f64[2]", "%2")));
  EXPECT_FALSE(equal(base, one("%2 = binop add %0 %1 : f32[2] @\"cpu:1\"", "%2")));
  EXPECT_FALSE(equal(base, one("%2 = binop add %0 %1 : f32[2]", "%1")));
  EXPECT_FALSE(equal(base, one("", "%1")));
}

struct BadText {
  const char* text;
  const char* message;
};

class GraphParseError : public testing::TestWithParam<BadText> {};

TEST_P(GraphParseError, NamesLineAndColumn) {
  EXPECT_EQ(error_of([] { parse(GetParam().text); }), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    All, GraphParseError,
    testing::Values(
        BadText{"graph {\n  %0 = bogus : f32[]\n  return\n}",
                "parse: unknown operation `bogus` (line 2, column 8, at `bogus : f32[]`)"},
        BadText{"graph {\n  %0 = unary neg %0 : f32[]\n return\n}",
                "parse: use of the undefined value %0 (line 2, column 18, at `%0 : f32[]`)"},
        BadText{"graph {\n  %0 = unique id=1 : i64[]\n  return %0 %3\n}",
                "parse: use of the undefined value %3 (line 3, column 13, at `%3`)"},
        BadText{"graph {\n  %1 = unique id=1 : i64[]\n  return\n}",
                "parse: expected the definition of %0 (line 2, column 3, at `%1 = unique id=1 : "
                "i64[]`)"},
        BadText{"graph {\n  %0 = unique id=1 : i64[]\n  %0 = unique id=2 : i64[]\n  return\n}",
                "parse: expected the definition of %1 (line 3, column 3, at `%0 = unique id=2 : "
                "i64[]`)"},
        BadText{"graph { %0 = unique : i64[] return }",
                "parse: expected the attribute id= (line 1, column 21, at `: i64[] return }`)"},
        BadText{"graph { %0 = binop plus : i64[] return }",
                "parse: unknown rune::AluOp `plus` (line 1, column 25, at `: i64[] return }`)"},
        BadText{"graph { %0 = unique id=1 return }",
                "parse: expected `:` (line 1, column 26, at `return }`)"},
        BadText{"graph { %0 = unique id=1 : i63[] return }",
                "parse: unknown rune::DType `i63` (line 1, column 31, at `[] return }`)"},
        BadText{"graph { }", "parse: expected `return` (line 1, column 9, at `}`)"},
        BadText{"graph { return", "parse: expected `}` (line 1, column 15, at the end)"},
        BadText{"graph { return } }",
                "parse: expected the end of the text (line 1, column 18, at `}`)"},
        BadText{"schedule { return }",
                "parse: expected `graph` (line 1, column 1, at `schedule { return }`)"}));

}  // namespace
}  // namespace rune::graph
