// The textual form of graphs; parse(print(g)) equals g.
//
//   graph {
//     %0 = placeholder index=0 : f32[8,4]
//     %1 = reduce_axis add axes=[1] %0 : f32[8,1]
//     %2 = binop mul %1 %1 : f32[8,1]
//     return %2
//   }
#pragma once

#include <string>
#include <string_view>

#include "graph/node.h"

namespace rune::graph {

std::string print(const Graph& graph);
// One node, as in print, without indentation or newline.
std::string print_node(const Graph& graph, Value v);
// Throws UserError(Parse) with line and column. Types are parsed, not inferred: `verify` compares.
Graph parse(std::string_view text);
// The same, from a lexer that is at the word `graph`. Leaves it after the closing brace.
Graph parse(text::Lexer& lexer);
// A node's kind and attributes, as in print: `reduce_axis add axes=[1]`. Its sizes may contain
// these variables.
Payload parse_payload(std::string_view text, const std::vector<SymVar>& vars);
bool equal(const Graph& a, const Graph& b);

}  // namespace rune::graph
