#include "graph/node.h"

#include <algorithm>
#include <map>
#include <string>

#include "base/error.h"
#include "graph/attribute_dims.h"

namespace rune::graph {

Payload::Payload() = default;
Payload::Payload(const Payload&) = default;
Payload::Payload(Payload&&) noexcept = default;
Payload& Payload::operator=(const Payload&) = default;
Payload& Payload::operator=(Payload&&) noexcept = default;
Payload::~Payload() = default;
bool Payload::operator==(const Payload& o) const {
  return static_cast<const AnyNode&>(*this) == o;
}

const char* name_of(NodeKind kind) {
  static constexpr const char* kNames[] = {
#define RUNE_NODE(Name, text, ...) text,
      RUNE_GRAPH_NODES(RUNE_NODE)
#undef RUNE_NODE
  };
  static_assert(std::size(kNames) == kNumNodeKinds);
  return kNames[static_cast<int>(kind)];
}

Dialect dialect_of_kind(NodeKind kind) {
  static constexpr Dialect kDialects[] = {
#define RUNE_NODE(Name, text, least, most, dialect) Dialect::dialect,
      RUNE_GRAPH_NODES(RUNE_NODE)
#undef RUNE_NODE
  };
  return kDialects[static_cast<int>(kind)];
}

const char* name_of(ScatterMode mode) {
  const std::optional<ReduceOp> op = reduce_op(mode);
  return op ? name_of(*op) : "set";
}

std::optional<ReduceOp> reduce_op(ScatterMode mode) {
  switch (mode) {
    case ScatterMode::Set: return std::nullopt;
    case ScatterMode::Add: return ReduceOp::Add;
    case ScatterMode::Prod: return ReduceOp::Prod;
    case ScatterMode::Max: return ReduceOp::Max;
    case ScatterMode::Min: return ReduceOp::Min;
  }
  RUNE_UNREACHABLE();
}

bool CustomAttr::operator==(const CustomAttr& other) const {
  return text::to_text(*this) == text::to_text(other);
}

const std::string* custom_source(const Custom& custom, const std::string& key) {
  for (const CustomAttr& attribute : custom.attributes)
    if (attribute.key == key) return std::get_if<std::string>(&attribute.value);
  return nullptr;
}

std::optional<int64_t> custom_reference(const Custom& custom) {
  for (const CustomAttr& attribute : custom.attributes)
    if (attribute.key == "reference")
      if (const auto* call = std::get_if<int64_t>(&attribute.value)) return *call;
  return std::nullopt;
}

std::vector<Value> Graph::inputs() const {
  std::vector<Value> result;
  for (uint32_t i = 0; i < nodes.size(); ++i)
    if (nodes[i].as<Placeholder>()) result.push_back({i});
  std::sort(result.begin(), result.end(), [&](Value a, Value b) {
    const int64_t x = nodes[a.id].as<Placeholder>()->index;
    const int64_t y = nodes[b.id].as<Placeholder>()->index;
    return x != y ? x < y : a < b;
  });
  return result;
}

std::vector<SymVar> Graph::symbolic_vars() const {
  std::vector<bool> bound(nodes.size()), used(nodes.size());
  for (const Node& node : nodes)
    for (const Value v : node.inputs) (node.as<Bind>() ? bound : used)[v.id] = true;
  for (const Value v : outputs) used[v.id] = true;
  const auto sizes = [&](const std::string& name) {
    return std::any_of(nodes.begin(), nodes.end(), [&](const Node& node) {
      return std::any_of(node.shape().begin(), node.shape().end(),
                         [&](const Dim& size) { return size.depends_on(name); });
    });
  };
  std::vector<SymVar> result;
  for (size_t id = 0; id < nodes.size(); ++id) {
    const auto* define = nodes[id].as<Define_Var>();
    if (!define || (bound[id] && !used[id] && !sizes(define->var.name))) continue;
    if (!contains(result, define->var)) result.push_back(define->var);
  }
  return result;
}

Value Graph::definition(const SymVar& var) const {
  for (uint32_t id = 0; id < nodes.size(); ++id) {
    const auto* define = nodes[id].as<Define_Var>();
    if (define && define->var == var) return {id};
  }
  RUNE_UNREACHABLE("the size ", var.name, " is not declared");
}

const SymVar* declared_variable(const Node& node) {
  if (const auto* define = node.as<Define_Var>()) return &define->var;
  if (const auto* counter = node.as<Loop_Counter>()) return &counter->var;
  const auto* size = node.as<Loop_Size>();
  return size ? &size->var : nullptr;
}

int64_t bytes_of(const Node& node) {
  return max_elements(node.shape()) * size_of(node.dtype());
}

bool is_computed(const Node& node) {
  return !node.as<Placeholder>() && !node.as<Vconst>() && !node.as<Const_Scalar>() &&
         !node.as<Iota>() && !node.as<Define_Var>();
}

std::vector<uint32_t> count_uses(const Graph& graph) {
  std::vector<uint32_t> uses(graph.size());
  std::map<std::string, size_t> sizes;  // Loop_Sizes by variable
  for (size_t id = 0; id < graph.size(); ++id)
    if (const auto* size = graph.nodes[id].as<Loop_Size>()) sizes[size->var.name] = id;
  for (const Value v : graph.outputs) ++uses[v.id];
  for (size_t id = graph.size(); id-- > 0;) {
    const Node& node = graph.nodes[id];
    if (uses[id] == 0 && !node.as<Sink>()) continue;
    for (const Value v : node.inputs) ++uses[v.id];
    if (sizes.empty()) continue;
    for_each_dim(node, [&](const Dim& size) {
      for (const Dim::Term& term : size.terms())
        if (const auto known = sizes.find(term.var.name); known != sizes.end())
          ++uses[known->second];
    });
  }
  return uses;
}

}  // namespace rune::graph

namespace rune::text {

// Prints `"key"=value`. A double has a point or an exponent, or is inf or nan. An integer has none
// of these.
void Codec<graph::CustomAttr>::print(std::string& out, const graph::CustomAttr& attr) {
  out += quote(attr.key);
  out += '=';
  std::visit(
      [&](const auto& value) { Codec<std::remove_cvref_t<decltype(value)>>::print(out, value); },
      attr.value);
}

graph::CustomAttr Codec<graph::CustomAttr>::parse(Lexer& lexer) {
  graph::CustomAttr attr;
  attr.key = lexer.string_literal();
  lexer.expect("=");
  if (lexer.peek("\"")) {
    attr.value = lexer.string_literal();
  } else if (lexer.peek("[")) {
    attr.value = Codec<Ints>::parse(lexer);
  } else {
    Lexer again = lexer;
    if (lexer.number().find_first_of(".en") == std::string::npos) {
      attr.value = again.integer();
    } else {
      attr.value = Codec<double>::parse(again);
    }
    lexer = again;
  }
  return attr;
}

}  // namespace rune::text
