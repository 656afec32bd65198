#include "graph/text.h"

#include "base/error.h"

namespace rune::graph {

namespace {

using text::Codec;
using text::Lexer;

void print_type(std::string& out, const Metadata& meta) {
  Codec<DType>::print(out, meta.dtype);
  Codec<Shape>::print(out, meta.shape);
  if (meta.device) out += " @" + text::quote(*meta.device);
}

Metadata parse_type(Lexer& lexer) {
  Metadata meta;
  meta.dtype = Codec<DType>::parse(lexer);
  meta.shape = Codec<Shape>::parse(lexer);
  if (lexer.accept("@")) meta.device = lexer.string_literal();
  return meta;
}

void print_values(std::string& out, const std::vector<Value>& values) {
  for (const Value v : values) {
    out += ' ';
    Codec<Value>::print(out, v);
  }
}

void append_node(std::string& out, const Node& node, uint32_t id) {
  Codec<Value>::print(out, {id});
  out += " = ";
  out += name_of(node.kind());
  std::visit([&](const auto& payload) { text::print_fields(out, payload); }, node.payload);
  print_values(out, node.inputs);
  out += " : ";
  print_type(out, node.meta);
}

// Reads values up to the next token of another kind. All must have been defined.
std::vector<Value> parse_values(Lexer& lexer, size_t num_defined) {
  std::vector<Value> values;
  while (lexer.peek("%")) {
    const Lexer start = lexer;
    const Value v = Codec<Value>::parse(lexer);
    if (v.id >= num_defined) start.fail(concat("use of the undefined value %", v.id));
    values.push_back(v);
  }
  return values;
}

template <class Kind>
Payload parse_attributes(Lexer& lexer) {
  Kind payload;
  text::parse_fields(lexer, payload);
  return payload;
}

Payload parse_operation(Lexer& lexer) {
  struct Row {
    std::string_view name;
    Payload (*parse)(Lexer&);
  };
  static constexpr Row kRows[] = {
#define RUNE_NODE(Name, text, ...) {text, parse_attributes<Name>},
      RUNE_GRAPH_NODES(RUNE_NODE)
#undef RUNE_NODE
  };
  const Lexer start = lexer;
  const std::string name = lexer.ident();
  for (const Row& row : kRows)
    if (row.name == name) return row.parse(lexer);
  start.fail("unknown operation `" + name + "`");
}

}  // namespace

std::string print_node(const Graph& graph, Value v) {
  std::string out;
  append_node(out, graph[v], v.id);
  return out;
}

std::string print(const Graph& graph) {
  std::string out = "graph {\n";
  for (uint32_t i = 0; i < graph.size(); ++i) {
    out += "  ";
    append_node(out, graph.nodes[i], i);
    out += '\n';
  }
  out += "  return";
  print_values(out, graph.outputs);
  return out + "\n}\n";
}

Graph parse(Lexer& lexer) {
  Graph graph;
  lexer.expect_ident("graph");
  lexer.expect("{");
  while (lexer.peek("%")) {
    const Lexer start = lexer;
    const uint32_t id = lexer.value_id();
    if (id != graph.size()) start.fail(concat("expected the definition of %", graph.size()));
    lexer.expect("=");
    Node node;
    node.payload = parse_operation(lexer);
    if (const SymVar* var = declared_variable(node))
      lexer.declare(var->name, var->min_val, var->max_val);
    node.inputs = parse_values(lexer, graph.size());
    lexer.expect(":");
    node.meta = parse_type(lexer);
    graph.nodes.push_back(std::move(node));
  }
  lexer.expect_ident("return");
  graph.outputs = parse_values(lexer, graph.size());
  lexer.expect("}");
  return graph;
}

Graph parse(std::string_view source) {
  Lexer lexer(source);
  Graph graph = parse(lexer);
  if (!lexer.at_end()) lexer.fail("expected the end of the text");
  return graph;
}

Payload parse_payload(std::string_view source, const std::vector<SymVar>& vars) {
  Lexer lexer(source);
  for (const SymVar& var : vars) lexer.declare(var.name, var.min_val, var.max_val);
  Payload payload = parse_operation(lexer);
  if (!lexer.at_end()) lexer.fail("expected the end of the text");
  return payload;
}

bool Subgraph::operator==(const Subgraph& other) const {
  return graph == other.graph || (graph && other.graph && equal(*graph, *other.graph));
}

bool equal(const Graph& a, const Graph& b) {
  if (a.size() != b.size() || a.outputs != b.outputs) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    const Node &x = a.nodes[i], &y = b.nodes[i];
    if (x.payload != y.payload || x.inputs != y.inputs || x.meta != y.meta) return false;
  }
  return true;
}

}  // namespace rune::graph

namespace rune::text {

void Codec<graph::Subgraph>::print(std::string& out, const graph::Subgraph& subgraph) {
  std::string text = graph::print(*subgraph.graph);
  text.pop_back();  // the line goes on
  out += text;
}

graph::Subgraph Codec<graph::Subgraph>::parse(Lexer& lexer) {
  return {std::make_shared<const graph::Graph>(graph::parse(lexer))};
}

}  // namespace rune::text
