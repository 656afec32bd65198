// Movement rules: index tuples pushed through chains of movement nodes, against the nodes' own
// meaning.
#include "schedule/indexing/indexing.h"

#include "base/error.h"
#include "expr_testing.h"
#include "random_program.h"
#include "reference.h"
#include "schedule/indexing/demand.h"
#include "schedule_testing.h"

namespace rune::schedule {
namespace {

// The value of an element, found by following operand_accesses from symbolic indices; `at` gives
// the variables' values.
class Follower {
 public:
  Follower(const graph::Graph& graph, const std::vector<Tensor>& inputs, const Ints& at)
      : graph_(graph), inputs_(inputs), at_(at) {}

  int64_t element(Value v, const Index& index) const {
    const graph::Node& node = graph_[v];
    if (const auto* argument = node.as<graph::Placeholder>())
      return load(inputs_[argument->index], index);
    int64_t result = 0;
    int holding = 0;
    for (const Access& access : operand_accesses(graph_, v, index)) {
      if (!sym::evaluate(access.mask, value())) continue;
      ++holding;
      result = element(access.value, access.index);
    }
    const bool selects = evaluation_of(node) == Evaluation::Select;
    EXPECT_TRUE(selects ? holding == 1 : holding <= 1) << graph::print_node(graph_, v);
    return result;
  }

 private:
  std::function<int64_t(uint32_t)> value() const {
    return [this](uint32_t variable) { return at_.at(variable); };
  }

  int64_t load(const Tensor& x, const Index& index) const {
    int64_t position = 0;
    for (size_t d = 0; d < index.size(); ++d) {
      const int64_t i = sym::evaluate(index[d], value());
      EXPECT_TRUE(0 <= i && i < x.shape[d])
          << "index " << i << " of dimension " << d << " of " << shape_text(x.shape);
      // An axis of size 1 has one element, whatever a simplified index says.
      position = position * x.shape[d] + i;
    }
    EXPECT_EQ(sym::evaluate(sym::flatten_index(index, x.shape), value()), position);
    return x.data.at(position);
  }

  const graph::Graph& graph_;
  const std::vector<Tensor>& inputs_;
  const Ints& at_;
};

void expect_same(const graph::Graph& graph, Value v, const std::vector<Tensor>& inputs) {
  const std::vector<Tensor> direct = evaluate_graph(graph, inputs);
  const Shape& shape = graph[v].shape();
  const Index index = variable_index(shape, 0);
  size_t next = 0;
  for_each_index(constants_of(shape), [&](const Ints& at) {
    const int64_t found = Follower(graph, inputs, at).element(v, index);
    ASSERT_EQ(found, direct[v.id].data[next++]) << graph::print(graph) << "at " << shape_text(at);
  });
}

TEST(Indexing, RandomChainsOfMovement) {
  for (uint32_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomProgram program(seed);
    program.add_input();
    program.add_input();
    for (int step = 0; step < 6; ++step) program.add_movement();
    const Value last{static_cast<uint32_t>(program.builder().size()) - 1};
    expect_same(program.builder().graph(), last, program.inputs());
    if (HasFatalFailure() || HasNonfatalFailure()) return;
  }
}

// Each rule alone, with the text of the index that it gives.
class Rule : public testing::Test {
 protected:
  std::string text(Value v) {
    std::string result;
    for (const Access& access : operand_accesses(b.graph(), v, variable_index(b.shape(v), 0))) {
      result += result.empty() ? "" : " | ";
      for (const sym::Expr& expr : access.index)
        result += (&expr == access.index.data() ? "" : ", ") + sym::text_of(expr);
      if (!access.mask.is_true()) result += " if " + sym::text_of(access.mask);
    }
    return result;
  }
  Builder b;
};

TEST_F(Rule, Permute) {
  EXPECT_EQ(text(b.permute(input(b, {2, 3, 4}), {2, 0, 1})), "v1, v2, v0");
}

TEST_F(Rule, ReshapeThatSplits) {
  EXPECT_EQ(text(b.reshape(input(b, {12}), {3, 4})), "4*v0 + v1");
}

TEST_F(Rule, ReshapeThatMerges) {
  EXPECT_EQ(text(b.reshape(input(b, {3, 4}), {12})), "v0//4, v0%4");
}

TEST_F(Rule, ReshapeThatSplitsAndMergesBackLeavesNoDivision) {
  const Value split = b.reshape(input(b, {6, 4}), {2, 3, 4});
  const Value merged = b.reshape(b.permute(split, {0, 1, 2}), {6, 4});
  const Index index = variable_index({6, 4}, 0);
  const Index back = operand_accesses(b.graph(), merged, index)[0].index;
  EXPECT_EQ(operand_accesses(b.graph(), split, back)[0].index, index);
}

TEST_F(Rule, Expand) {
  EXPECT_EQ(text(b.expand(input(b, {1, 3}), {5, 3})), "0, v1");
}

TEST_F(Rule, Shrink) {
  EXPECT_EQ(text(b.shrink(input(b, {9, 9}), {{2, 5}, {0, 9}})), "v0 + 2, v1");
}

TEST_F(Rule, Flip) {
  EXPECT_EQ(text(b.flip(input(b, {7, 2}), {0})), "-v0 + 6, v1");
}

TEST_F(Rule, PadMasksBothSides) {
  const Value y = b.pad(input(b, {4}), {{2, 1}});
  const Access access = operand_accesses(b.graph(), y, variable_index({7}, 0))[0];
  EXPECT_EQ(sym::text_of(access.index[0]), "v0 - 2");
  EXPECT_EQ(access.mask.conditions().size(), 2u) << sym::text_of(access.mask);
}

TEST_F(Rule, PadOnOneSideHasOneCondition) {
  const Value y = b.pad(input(b, {4}), {{0, 3}});
  EXPECT_EQ(operand_accesses(b.graph(), y, variable_index({7}, 0))[0].mask.conditions().size(), 1u);
}

TEST_F(Rule, ShrinkOfThePaddingNeedsNoMask) {
  const Value padded = b.pad(input(b, {4}), {{2, 1}});
  const Value y = b.shrink(padded, {{2, 6}});
  const Index index = operand_accesses(b.graph(), y, variable_index({4}, 0))[0].index;
  const Access access = operand_accesses(b.graph(), padded, index)[0];
  EXPECT_TRUE(access.mask.is_true());
  EXPECT_EQ(sym::text_of(access.index[0]), "v0");
}

TEST_F(Rule, CatSelectsOneOperand) {
  const Value x = input(b, {2, 3}), y = input(b, {5, 3});
  const Value joined = b.cat({x, y}, 0);
  const std::vector<Access> accesses =
      operand_accesses(b.graph(), joined, variable_index({7, 3}, 0));
  ASSERT_EQ(accesses.size(), 2u);
  EXPECT_EQ(sym::text_of(accesses[1].index[0]), "v0 - 2");
  for (int64_t i = 0; i < 7; ++i) {
    const auto at = [i](uint32_t) { return i; };
    EXPECT_EQ(sym::evaluate(accesses[0].mask, at), i < 2);
    EXPECT_EQ(sym::evaluate(accesses[1].mask, at), i >= 2);
  }
}

TEST_F(Rule, PartsOfSizeOneAreReadAtZero) {
  const Value joined = b.cat({input(b, {2, 3}), input(b, {1, 3})}, 0);
  const Access last = operand_accesses(b.graph(), joined, variable_index({3, 3}, 0))[1];
  EXPECT_EQ(sym::text_of(last.index[0]), "0");
  const Value padded = b.pad(input(b, {1}), {{2, 1}});
  const Access access = operand_accesses(b.graph(), padded, variable_index({4}, 0))[0];
  EXPECT_EQ(sym::text_of(access.index[0]), "0");
  for (int64_t i = 0; i < 4; ++i) {
    const auto at = [i](uint32_t) { return i; };
    EXPECT_EQ(sym::evaluate(access.mask, at), i == 2);
  }
}

TEST_F(Rule, ContractPairsItsAxes) {
  const Value x = input(b, {2, 3, 4}), y = input(b, {2, 4, 5});
  const Value p = b.contract(x, y, {{2, 1}}, {{0, 0}});
  EXPECT_EQ(reduced_shape(b.graph(), p), (Shape{4}));
  const auto accesses =
      reduction_accesses(b.graph(), p, variable_index({2, 3, 5}, 0), variable_index({4}, 3));
  ASSERT_EQ(accesses.size(), 2u);
  EXPECT_EQ(accesses[0].index, (Index{variable_index({2, 3, 5}, 0)[0],
                                      variable_index({2, 3, 5}, 0)[1], variable_index({4}, 3)[0]}));
  EXPECT_EQ(accesses[1].index, (Index{variable_index({2, 3, 5}, 0)[0], variable_index({4}, 3)[0],
                                      variable_index({2, 3, 5}, 0)[2]}));
}

TEST_F(Rule, SourceNodesHaveNoElements) {
  const graph::Graph graph = graph::parse("graph { %0 = unique id=8 : i64[] return %0 }");
  EXPECT_THROW(evaluation_of(graph.nodes[0]), InternalError);
}

}  // namespace
}  // namespace rune::schedule
