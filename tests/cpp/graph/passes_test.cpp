#include <chrono>
#include <cmath>

#include "alu/eval.h"
#include "graph/passes/passes.h"
#include "graph_testing.h"

namespace rune::graph {
namespace {

struct Pass {
  const char* name;
  Graph (*run)(const Graph&);
};

void PrintTo(const Pass& pass, std::ostream* out) {
  *out << pass.name;
}

const Pass kPasses[] = {{"fold_constants", fold_constants},
                        {"simplify", simplify},
                        {"eliminate_common_subexpressions", eliminate_common_subexpressions},
                        {"eliminate_dead_code", eliminate_dead_code}};

// Runs a pass and checks what holds after any of them.
Graph run(const Pass& pass, const Graph& graph) {
  const Graph result = pass.run(graph);
  expect_valid(result);
  EXPECT_EQ(print(pass.run(result)), print(result)) << pass.name << " is not idempotent";
  EXPECT_EQ(result.inputs().size(), graph.inputs().size());
  EXPECT_EQ(result.outputs.size(), graph.outputs.size());
  for (size_t i = 0; i < graph.outputs.size(); ++i)
    EXPECT_EQ(result[result.outputs[i]].meta, graph[graph.outputs[i]].meta);
  return result;
}

// A text of nodes and outputs before and after a pass; `graph {}` and the indentation are left out.
void expect_pass(const Pass& pass, const std::string& before, const std::string& after) {
  const Graph input = parse("graph {" + before + "}");
  ASSERT_EQ(verify(input), std::vector<std::string>{}) << before;
  EXPECT_EQ(print(run(pass, input)), print(parse("graph {" + after + "}")));
}

class EachPass : public testing::TestWithParam<Pass> {};

TEST_P(EachPass, KeepsAGraphOfEveryKindValid) {
  Graph graph = every_core_kind();
  run(GetParam(), graph);
  for (uint32_t i = 0; i < graph.size(); ++i) graph.outputs.push_back({i});
  run(GetParam(), graph);
}

TEST_P(EachPass, KeepsAnEmptyGraph) {
  EXPECT_EQ(run(GetParam(), Graph{}).size(), 0u);
}

TEST_P(EachPass, KeepsLocationsAndUnusedPlaceholders) {
  Builder b;
  b.set_location("a.py:1");
  const Value x = b.placeholder(DType::Float32, {2});
  b.placeholder(DType::Float32, {3});
  b.set_location("a.py:2");
  b.set_outputs({b.alu(AluOp::Sin, {x})});
  const Graph result = run(GetParam(), b.graph());
  ASSERT_EQ(result.size(), 3u);
  EXPECT_EQ(result.nodes[0].location, "a.py:1");
  EXPECT_EQ(result.nodes[2].location, "a.py:2");
}

TEST_P(EachPass, TakesLinearTime) {
  Builder b;
  const Value x = b.placeholder(DType::Float32, {16, 16});
  Value v = x;
#ifdef NDEBUG
  const size_t num_nodes = 100000;
#else
  const size_t num_nodes = 20000;
#endif
  while (b.size() < num_nodes) {
    v = b.alu(AluOp::Add, {v, b.full(Scalar::of(DType::Float32, 1.5), {16, 16})});
    v = b.alu(AluOp::Mul, {b.reshape(b.reshape(v, {256}), {16, 16}), x});
  }
  b.set_outputs({v});
  const auto start = std::chrono::steady_clock::now();
  const Graph result = GetParam().run(b.graph());
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  EXPECT_GT(result.size(), num_nodes / 10);
  RecordProperty("milliseconds", static_cast<int>(elapsed.count() * 1000));
  EXPECT_LT(elapsed.count(), 10) << "quadratic?";  // wide, for sanitizers and busy machines
}

INSTANTIATE_TEST_SUITE_P(All, EachPass, testing::ValuesIn(kPasses),
                         [](const auto& info) { return info.param.name; });

// --- Values: a graph of 0-d values computes the same before and after a pass.

Scalar compute(const Graph& graph, Value v, const std::vector<Scalar>& arguments) {
  std::vector<Scalar> values;
  for (uint32_t id = 0; id <= v.id; ++id) {
    const Node& node = graph.nodes[id];
    std::vector<Scalar> in;
    for (const Value operand : node.inputs) in.push_back(values[operand.id]);
    if (const auto* n = node.as<Placeholder>())
      values.push_back(arguments[n->index]);
    else if (const auto* n = node.as<Const_Scalar>())
      values.push_back(n->value);
    else if (const auto* n = node.as<Cast>())
      values.push_back(in[0].cast(n->target));
    else if (const auto* n = node.as<Bitcast>())
      values.push_back(Scalar::from_bits(n->target, in[0].bits()));
    else if (const auto* n = node.as<Unary>())
      values.push_back(evaluate(n->op, in));
    else if (const auto* n = node.as<Binop>())
      values.push_back(evaluate(n->op, in));
    else if (const auto* n = node.as<Ternary>())
      values.push_back(evaluate(n->op, in));
    else
      ADD_FAILURE() << "not a scalar node: " << print_node(graph, {id});
  }
  return values[v.id];
}

std::vector<Scalar> special_values(DType dtype) {
  std::vector<Scalar> values = {Scalar::lowest(dtype), Scalar::highest(dtype)};
  for (const double v : {0.0, 1.0, 2.0, 3.0, 0.5, 4.0, 0.1, 100.0, 1e-5, 65504.0, 1.2e-38}) {
    values.push_back(Scalar::of(dtype, v));
    values.push_back(Scalar::of(dtype, -v));
  }
  if (is_float(dtype)) values.push_back(Scalar::of(dtype, std::nan("")));
  return values;
}

bool same_value(const Scalar& a, const Scalar& b) {
  if (a == b) return true;
  return a.dtype() == b.dtype() && is_float(a.dtype()) && std::isnan(a.as_double()) &&
         std::isnan(b.as_double());
}

// Checks simplify and fold_constants of a graph with arguments of one dtype on special values.
void expect_same_values(const Graph& graph, DType dtype) {
  const std::vector<Scalar> values = special_values(dtype);
  for (const Pass& pass : {kPasses[0], kPasses[1]}) {
    const Graph after = pass.run(graph);
    if (equal(graph, after)) continue;
    for (const Scalar& x : values)
      for (const Scalar& y : graph.inputs().size() < 2 ? std::vector{x} : values) {
        const Scalar expected = compute(graph, graph.outputs[0], {x, y});
        const Scalar found = compute(after, after.outputs[0], {x, y});
        ASSERT_TRUE(same_value(expected, found))
            << pass.name << " of " << x.text() << ", " << y.text() << ": " << expected.text()
            << " became " << found.text() << "\n"
            << print(graph) << print(after);
      }
  }
}

class EachDtype : public testing::TestWithParam<int> {
 protected:
  DType dtype() const { return static_cast<DType>(GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(All, EachDtype, testing::Range(0, kNumDTypes),
                         [](const auto& info) { return name_of(static_cast<DType>(info.param)); });

TEST_P(EachDtype, BinaryOperationsWithConstantsKeepTheirValue) {
  for (const AluInfo& row : all_alu_ops()) {
    if (row.arity != 2 || !row.accepts(dtype())) continue;
    for (const Scalar& c : special_values(dtype()))
      for (const bool left : {false, true}) {
        Builder b;
        const Value x = b.placeholder(dtype(), {});
        const Value k = b.constant(c);
        b.set_outputs({b.alu(row.op, left ? std::vector{k, x} : std::vector{x, k})});
        expect_same_values(b.graph(), dtype());
      }
  }
}

TEST_P(EachDtype, RepeatedOperationsKeepTheirValue) {
  for (const AluInfo& outer : all_alu_ops()) {
    if (outer.arity > 2 || !outer.accepts(dtype())) continue;
    if (outer.arity == 2) {
      Builder b;
      const Value x = b.placeholder(dtype(), {});
      b.set_outputs({b.alu(outer.op, {x, x})});
      expect_same_values(b.graph(), dtype());
    }
    for (const AluInfo& inner : all_alu_ops()) {
      if (inner.arity > 2 || inner.arity < outer.arity || !inner.accepts(dtype())) continue;
      // outer(inner), or outer(inner, y) and outer(y, inner), where y is the inner one's, too.
      for (const bool inner_first : {true, false}) {
        Builder b;
        const Value x = b.placeholder(dtype(), {});
        const Value y = inner.arity == 2 ? b.placeholder(dtype(), {}) : Value{};
        const Value v = b.alu(inner.op, inner.arity == 2 ? std::vector{x, y} : std::vector{x});
        const bool is_unary = outer.arity == 1;
        if (is_unary ? !outer.accepts(b.dtype(v)) || !inner_first : b.dtype(v) != dtype()) continue;
        const auto pair = inner_first ? std::vector{v, y} : std::vector{y, v};
        b.set_outputs({b.alu(outer.op, is_unary ? std::vector{v} : pair)});
        expect_same_values(b.graph(), dtype());
      }
    }
  }
}

// outer(inner(x), y), outer(x, inner(y)) and outer(inner(x), inner(y)).
TEST_P(EachDtype, BinaryOperationsOfUnaryOnesKeepTheirValue) {
  for (const AluInfo& outer : all_alu_ops()) {
    if (outer.arity != 2 || !outer.accepts(dtype())) continue;
    for (const AluInfo& inner : all_alu_ops()) {
      if (inner.arity != 1 || !inner.accepts(dtype())) continue;
      for (const bool left : {false, true})
        for (const bool right : {false, true}) {
          Builder b;
          const Value x = b.placeholder(dtype(), {}), y = b.placeholder(dtype(), {});
          const Value u = left ? b.alu(inner.op, {x}) : x, v = right ? b.alu(inner.op, {y}) : y;
          if (b.dtype(u) != b.dtype(v) || !outer.accepts(b.dtype(u))) continue;
          b.set_outputs({b.alu(outer.op, {u, v})});
          expect_same_values(b.graph(), dtype());
        }
    }
  }
}

TEST_P(EachDtype, ChainsOfConstantsKeepTheirValue) {
  const std::vector<Scalar> constants = special_values(dtype());
  for (const AluOp outer : {AluOp::Add, AluOp::Sub, AluOp::Mul, AluOp::Max, AluOp::And, AluOp::Xor})
    for (const AluOp inner : {AluOp::Add, AluOp::Sub, AluOp::Mul, AluOp::Max, AluOp::And})
      for (const Scalar& c : constants) {
        if (!info(outer).accepts(dtype()) || !info(inner).accepts(dtype())) continue;
        Builder b;
        const Value x = b.placeholder(dtype(), {});
        const Value v = b.alu(inner, {b.constant(c), x});
        b.set_outputs({b.alu(outer, {v, b.constant(constants[3])})});
        expect_same_values(b.graph(), dtype());
      }
}

TEST_P(EachDtype, MulaccKeepsItsValue) {
  if (is_bool(dtype())) return;
  for (const Scalar& c : special_values(dtype()))
    for (int at = 0; at < 3; ++at) {
      Builder b;
      const Value x = b.placeholder(dtype(), {}), y = b.placeholder(dtype(), {});
      std::vector<Value> operands = {x, y};
      operands.insert(operands.begin() + at, b.constant(c));
      b.set_outputs({b.alu(AluOp::Mulacc, operands)});
      expect_same_values(b.graph(), dtype());
    }
}

TEST_P(EachDtype, ChainsOfCastsKeepTheirValue) {
  for (int between = 0; between < kNumDTypes; ++between)
    for (int to = 0; to < kNumDTypes; ++to) {
      Builder b;
      const Value x = b.placeholder(dtype(), {});
      b.set_outputs({b.cast(b.cast(x, static_cast<DType>(between)), static_cast<DType>(to))});
      expect_same_values(b.graph(), dtype());
    }
}

TEST(Simplify, WhereOfBoolsKeepsItsValue) {
  for (const bool c : {false, true})
    for (const bool d : {false, true}) {
      Builder b;
      const Value x = b.placeholder(DType::Bool, {}), y = b.placeholder(DType::Bool, {});
      const Value k = b.constant(Scalar::of(DType::Bool, c));
      const Value l = b.constant(Scalar::of(DType::Bool, d));
      for (const std::vector<Value>& operands :
           {std::vector{x, k, l}, {k, x, y}, {x, k, y}, {x, y, y}}) {
        Builder again(b.graph());
        again.set_outputs({again.alu(AluOp::Where, operands)});
        expect_same_values(again.graph(), DType::Bool);
        const Value inverted = again.alu(AluOp::Not, {x});
        again.set_outputs({again.alu(AluOp::Where, {inverted, operands[1], operands[2]})});
        expect_same_values(again.graph(), DType::Bool);
      }
    }
}

// --- Texts: that the rules do apply, on arrays, and what they leave.

const char* kX = "%0 = placeholder index=0 : f32[2,3] ";

TEST(Simplify, MergesMovement) {
  const auto check = [](const std::string& nodes, const std::string& after) {
    expect_pass(kPasses[1], kX + nodes, kX + after);
  };
  check("%1 = reshape shape=[6] %0 : f32[6] %2 = reshape shape=[3,2] %1 : f32[3,2] return %2",
        "%1 = reshape shape=[3,2] %0 : f32[3,2] return %1");
  check("%1 = reshape shape=[6] %0 : f32[6] %2 = reshape shape=[2,3] %1 : f32[2,3] return %2",
        "return %0");
  check("%1 = permute axes=[1,0] %0 : f32[3,2] %2 = permute axes=[1,0] %1 : f32[2,3] return %2",
        "return %0");
  check("%1 = flip axes=[1,0] %0 : f32[2,3] %2 = flip axes=[0] %1 : f32[2,3] return %2",
        "%1 = flip axes=[1] %0 : f32[2,3] return %1");
  check(
      "%1 = pad widths=[(1,0),(0,2)] %0 : f32[3,5] "
      "%2 = pad widths=[(0,1),(0,1)] %1 : f32[4,6] return %2",
      "%1 = pad widths=[(1,1),(0,3)] %0 : f32[4,6] return %1");
  check(
      "%1 = shrink limits=[(1,2),(1,3)] %0 : f32[1,2] "
      "%2 = shrink limits=[(0,1),(1,2)] %1 : f32[1,1] return %2",
      "%1 = shrink limits=[(1,2),(2,3)] %0 : f32[1,1] return %1");
  check(
      "%1 = view {views=[{shape=[3,2] strides=[1,3] offset=0}]} %0 : f32[3,2] "
      "%2 = view {views=[{shape=[6] strides=[1] offset=0}]} %1 : f32[6] return %2",
      "%1 = view {views=[{shape=[3,2] strides=[1,3] offset=0},{shape=[6] strides=[1] offset=0}]} "
      "%0 : f32[6] return %1");
}

TEST(Simplify, MergesExpandsAndPermutations) {
  expect_pass(kPasses[1],
              "%0 = placeholder index=0 : i8[1,1,4] %1 = expand shape=[1,3,4] %0 : i8[1,3,4] "
              "%2 = expand shape=[2,3,4] %1 : i8[2,3,4] return %2",
              "%0 = placeholder index=0 : i8[1,1,4] %1 = expand shape=[2,3,4] %0 : i8[2,3,4] "
              "return %1");
  expect_pass(kPasses[1],
              "%0 = placeholder index=0 : i8[2,3,4] %1 = permute axes=[1,2,0] %0 : i8[3,4,2] "
              "%2 = permute axes=[0,2,1] %1 : i8[3,2,4] return %2",
              "%0 = placeholder index=0 : i8[2,3,4] %1 = permute axes=[1,0,2] %0 : i8[3,2,4] "
              "return %1");
}

TEST(Simplify, MergesReductionsThatNothingElseUses) {
  const std::string inner = "%1 = reduce_axis add axes=[1] %0 : f32[2,1] ";
  expect_pass(kPasses[1], kX + inner + "%2 = reduce_axis add axes=[0,1] %1 : f32[1,1] return %2",
              std::string(kX) + "%1 = reduce_axis add axes=[0,1] %0 : f32[1,1] return %1");
  const std::string other = kX + inner + "%2 = reduce_axis max axes=[0] %1 : f32[1,1] return %2";
  expect_pass(kPasses[1], other, other);
  const std::string shared =
      kX + inner + "%2 = reduce_axis add axes=[0] %1 : f32[1,1] return %2 %1";
  expect_pass(kPasses[1], shared, shared);
}

TEST(Simplify, KeepsWhatIsNotExact) {
  for (const char* nodes :
       {"%1 = const_scalar f32(0.0) : f32[] %2 = binop add %0 %1 : f32[] return %2",
        "%1 = const_scalar f32(-0.0) : f32[] %2 = binop sub %0 %1 : f32[] return %2",
        "%1 = const_scalar f32(0.0) : f32[] %2 = binop mul %0 %1 : f32[] return %2",
        "%1 = const_scalar f32(0.5) : f32[] %2 = binop pow %0 %1 : f32[] return %2",
        "%1 = const_scalar f32(3.0) : f32[] %2 = binop fdiv %0 %1 : f32[] return %2",
        "%1 = const_scalar f32(1.7014118e+38) : f32[] %2 = binop fdiv %0 %1 : f32[] return %2",
        "%1 = binop sub %0 %0 : f32[] return %1", "%1 = binop cmpeq %0 %0 : bool[] return %1",
        "%1 = cast i32 %0 : i32[] %2 = cast f32 %1 : f32[] return %2"}) {
    const std::string text = std::string("%0 = placeholder index=0 : f32[] ") + nodes;
    expect_pass(kPasses[1], text, text);
  }
}

TEST(Simplify, KeepsTheDevice) {
  const std::string text =
      "%0 = placeholder index=0 : i8[] @\"cpu:1\" %1 = const_scalar i8(0) : i8[] "
      "%2 = binop mul %0 %1 : i8[] @\"cpu:1\" return %2";
  expect_pass(kPasses[1], text, text);
}

TEST(FoldConstants, EvaluatesVconsts) {
  expect_pass(kPasses[0],
              "%0 = vconst [i8(100),i8(-3)] : i8[2] %1 = const_scalar i8(50) : i8[] "
              "%2 = reshape shape=[1] %1 : i8[1] %3 = expand shape=[2] %2 : i8[2] "
              "%4 = binop add %0 %3 : i8[2] %5 = cast f32 %4 : f32[2] return %5",
              "%0 = vconst [f32(-106.0),f32(47.0)] : f32[2] return %0");
}

TEST(CommonSubexpressions, KeepsApartWhatMustBe) {
  const char* texts[] = {
      "%0 = placeholder index=0 : f32[] %1 = custom \"f\" attributes=[] %0 : f32[] "
      "%2 = custom \"f\" attributes=[] %0 : f32[] return %1 %2",
      "%0 = placeholder index=0 : f32[] %1 = const_scalar f32(0.0) : f32[] "
      "%2 = const_scalar f32(-0.0) : f32[] %3 = const_scalar f64(0.0) : f64[] return %1 %2 %3",
      "%0 = placeholder index=0 : f32[] %1 = placeholder index=1 : f32[] "
      "%2 = binop sub %0 %1 : f32[] %3 = binop sub %1 %0 : f32[] return %2 %3"};
  for (const char* text : texts) expect_pass(kPasses[2], text, text);
}

TEST(CommonSubexpressions, MergesChains) {
  expect_pass(
      kPasses[2],
      "%0 = placeholder index=0 : f32[] %1 = placeholder index=1 : f32[] "
      "%2 = binop add %0 %1 : f32[] %3 = binop add %1 %0 : f32[] "
      "%4 = unary sin %2 : f32[] %5 = unary sin %3 : f32[] %6 = const_scalar f32(nan) : f32[] "
      "%7 = const_scalar f32(nan) : f32[] return %4 %5 %6 %7",
      "%0 = placeholder index=0 : f32[] %1 = placeholder index=1 : f32[] "
      "%2 = binop add %0 %1 : f32[] %3 = unary sin %2 : f32[] "
      "%4 = const_scalar f32(nan) : f32[] return %3 %3 %4 %4");
}

TEST(DeadCode, KeepsWhatOutputsAndSinksReach) {
  expect_pass(
      kPasses[3],
      "%0 = placeholder index=0 : f32[] %1 = unary sin %0 : f32[] %2 = unary cos %0 : f32[] "
      "%3 = unary neg %2 : f32[] %4 = sink %3 : bool[0] %5 = unary exp %1 : f32[] "
      "%6 = unary abs %0 : f32[] return %6",
      "%0 = placeholder index=0 : f32[] %1 = unary cos %0 : f32[] %2 = unary neg %1 : f32[] "
      "%3 = sink %2 : bool[0] %4 = unary abs %0 : f32[] return %4");
}

}  // namespace
}  // namespace rune::graph
