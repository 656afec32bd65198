// Nodes are merged if they are equal, and only then: of every kind of the node table, each field in
// turn is varied.
#include <gtest/gtest.h>

#include "graph/passes/passes.h"
#include "graph/text.h"

namespace rune::graph {
namespace {

template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};
template <class T>
struct IsPair : std::false_type {};
template <class A, class B>
struct IsPair<std::pair<A, B>> : std::true_type {};

Subgraph subgraph(const char* type) {
  return {std::make_shared<const Graph>(
      parse("graph { %0 = placeholder index=0 : " + std::string(type) + " return %0 }"))};
}

// Gives every field a value that is not its default, so that it can be varied and left out.
template <class T>
void fill(T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    value = "a";
  } else if constexpr (std::is_same_v<T, bool> || std::is_enum_v<T>) {
  } else if constexpr (std::is_integral_v<T> || std::is_same_v<T, Dim>) {
    value = 3;
  } else if constexpr (std::is_same_v<T, Scalar>) {
    value = Scalar::of(DType::Float32, 0.0);
  } else if constexpr (std::is_same_v<T, Subgraph>) {
    value = subgraph("f32[2]");
  } else if constexpr (std::is_same_v<T, CustomAttr>) {
    value = {"key", int64_t{3}};
  } else if constexpr (std::is_same_v<T, std::vector<bool>>) {
    value = {true, false};
  } else if constexpr (IsVector<T>::value) {
    value.resize(2);
    for (auto& element : value) fill(element);
  } else if constexpr (IsPair<T>::value) {
    fill(value.first);
    fill(value.second);
  } else if constexpr (text::detail::IsOptional<T>::value) {
    fill(value.emplace());
  } else {
    value.fields([](const char*, auto& member) { fill(member); });
  }
}

// Values that differ from this one in one component.
template <class T>
std::vector<T> variations(const T& value) {
  std::vector<T> all;
  if constexpr (std::is_same_v<T, std::string>) {
    all = {value + "b", ""};
  } else if constexpr (std::is_same_v<T, bool>) {
    all.push_back(!value);
  } else if constexpr (std::is_enum_v<T>) {
    all = {static_cast<T>(static_cast<int>(value) + 1)};
  } else if constexpr (std::is_integral_v<T>) {
    all = {static_cast<T>(value + 1), static_cast<T>(-value), value + (T{1} << 40)};
  } else if constexpr (std::is_same_v<T, Dim>) {
    const Dim n(SymVar{"n", 1, 3}), m(SymVar{"m", 1, 3});
    all = {value + 1, value + (int64_t{1} << 40), n, m, n * 2, n + 1, n + m};
  } else if constexpr (std::is_same_v<T, Scalar>) {
    all = {Scalar::of(DType::Float32, -0.0), Scalar::of(DType::Float32, 1.0),
           Scalar::of(DType::Int32, 0), Scalar::of(DType::Float64, 0.0)};
  } else if constexpr (std::is_same_v<T, Subgraph>) {
    all = {subgraph("f32[3]"), subgraph("f64[2]")};
  } else if constexpr (std::is_same_v<T, CustomAttr>) {
    all = {{"other", value.value},
           {value.key, int64_t{4}},
           {value.key, 3.0},
           {value.key, std::string("3")},
           {value.key, Ints{3}}};
  } else if constexpr (std::is_same_v<T, std::vector<bool>>) {
    all = {{false, true}, {true, true}, {true}, {true, false, false}};
  } else if constexpr (IsVector<T>::value) {
    for (size_t i = 0; i < value.size(); ++i)
      for (auto& changed : variations(value[i])) {
        all.push_back(value);
        all.back()[i] = changed;
      }
    all.push_back(value);
    all.back().pop_back();
    all.push_back(value);
    all.back().push_back(value[0]);
  } else if constexpr (IsPair<T>::value) {
    for (auto& first : variations(value.first)) all.push_back({first, value.second});
    for (auto& second : variations(value.second)) all.push_back({value.first, second});
  } else if constexpr (text::detail::IsOptional<T>::value) {
    all.push_back(std::nullopt);
    for (auto& changed : variations(*value)) all.push_back(changed);
  } else {
    int fields = 0;
    const_cast<T&>(value).fields([&](const char*, auto& member) {
      const int number = fields++;
      for (const auto& changed : variations(member)) {
        all.push_back(value);
        int at = 0;
        all.back().fields([&](const char*, auto& copy) {
          if constexpr (std::is_same_v<decltype(copy), decltype(member)>)
            if (at == number) copy = changed;
          ++at;
        });
      }
    });
  }
  return all;
}

Node node_of(Payload payload) {
  return {std::move(payload), {{0}, {1}, {2}}, {DType::Float32, {2, 3}, std::nullopt}, ""};
}

// How many of the two nodes are left.
int kept(const Node& a, const Node& b) {
  Graph graph;
  for (int64_t i = 0; i < 4; ++i)
    graph.nodes.push_back({Placeholder{i}, {}, {DType::Float32, {2, 3}, std::nullopt}, ""});
  graph.nodes.push_back(a);
  graph.nodes.push_back(b);
  graph.outputs = {{4}, {5}};
  const Graph result = eliminate_common_subexpressions(graph);
  EXPECT_EQ(result.outputs.size(), 2u);
  return result.outputs[0] == result.outputs[1] ? 1 : 2;
}

// What each node stands for alone: memory, an effect, or an identity of its own.
bool is_merged(const Node& node) {
  return !node.as<Placeholder>() && !node.as<Custom>() && !node.as<Sink>();
}

template <size_t kKind>
void check_kind() {
  std::variant_alternative_t<kKind, AnyNode> payload{};
  if (dialect_of<decltype(payload)> == Dialect::Source) return;  // the pass runs on core nodes
  fill(payload);
  const Node node = node_of(payload);
  SCOPED_TRACE(name_of(node.kind()));
  EXPECT_EQ(kept(node, node), is_merged(node) ? 1 : 2);
  int number = 0;
  for (const auto& changed : variations(payload)) {
    EXPECT_EQ(kept(node, node_of(changed)), 2) << "variation " << number;
    EXPECT_EQ(kept(node_of(changed), node), 2) << "variation " << number;
    ++number;
  }
  Node other = node;
  other.meta.dtype = DType::Int32;
  EXPECT_EQ(kept(node, other), 2) << "dtype";
  other = node;
  other.meta.shape = {3, 2};
  EXPECT_EQ(kept(node, other), 2) << "shape";
  other = node;
  other.meta.device = "cpu:1";
  EXPECT_EQ(kept(node, other), 2) << "device";
  other = node;
  other.inputs[2] = {3};
  EXPECT_EQ(kept(node, other), 2) << "an operand";
  other = node;
  other.inputs.pop_back();
  EXPECT_EQ(kept(node, other), 2) << "number of operands";
  other = node;
  std::swap(other.inputs[0], other.inputs[1]);
  const auto* binop = node.as<Binop>();
  const bool commutes = binop && info(binop->op).commutes(node.dtype());
  EXPECT_EQ(kept(node, other), commutes ? 1 : 2) << "order of operands";
  other = node;
  other.location = "file.py:1";
  EXPECT_EQ(kept(node, other), is_merged(node) ? 1 : 2) << "source line";
}

template <size_t... kKinds>
void check_kinds(std::index_sequence<kKinds...>) {
  (check_kind<kKinds>(), ...);
}

TEST(EqualNodes, EveryFieldTellsNodesApart) {
  check_kinds(std::make_index_sequence<kNumNodeKinds>());
}

// Every pair of operations, since a wrong one is a wrong result at once.
TEST(EqualNodes, EveryOperationIsAnother) {
  for (const AluInfo& a : all_alu_ops())
    for (const AluInfo& b : all_alu_ops())
      EXPECT_EQ(kept(node_of(Unary{a.op}), node_of(Unary{b.op})), a.op == b.op ? 1 : 2)
          << a.text << ' ' << b.text;
}

}  // namespace
}  // namespace rune::graph
