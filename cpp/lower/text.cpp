#include "lower/text.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"

namespace rune::lower {

namespace {

using text::Codec;
using text::Lexer;

Type parse_type(Lexer& lexer) {
  Type type;
  type.pointer = lexer.lookahead_ident() == "ptr";
  if (type.pointer) lexer.ident();
  const std::string_view word = lexer.lookahead_ident();
  const size_t cut = word.find('x');
  const std::string_view name = word.substr(0, cut);
  for (int d = 0; d < kNumDTypes; ++d) {
    type.dtype = static_cast<DType>(d);
    if (name != name_of(type.dtype)) continue;
    if (cut != std::string_view::npos) {
      const auto [end, error] =
          std::from_chars(word.data() + cut + 1, word.data() + word.size(), type.lanes);
      if (error != std::errc() || end != word.data() + word.size() || type.lanes < 1)
        lexer.fail(concat("expected a number of lanes in `", word, "`"));
    }
    lexer.ident();
    return type;
  }
  lexer.fail(concat("unknown type `", word, "`"));
}

bool is_identifier(const std::string& s) {
  const Lexer lexer(s);
  return !s.empty() && lexer.lookahead_ident() == s;
}

void print_instr_to(std::string& out, const Instr& instr, size_t id) {
  const bool value = has_value(instr.kind());
  if (value) out += '%' + std::to_string(id) + " = ";
  out += name_of(instr.kind());
  std::visit([&](const auto& payload) { text::print_fields(out, payload); }, instr.payload);
  for (const Var arg : instr.args) {
    out += ' ';
    Codec<Var>::print(out, arg);
  }
  if (!value) return;
  out += " : ";
  out += type_text(instr.type);
}

Payload payload_named(const std::string& name, const Lexer& lexer) {
  static const Payload kPayloads[] = {
#define RUNE_INSTR(Name, ...) Name{},
      RUNE_LOWERED_INSTRS(RUNE_INSTR)
#undef RUNE_INSTR
  };
  for (const Payload& payload : kPayloads)
    if (name == name_of(static_cast<InstrKind>(payload.index()))) return payload;
  lexer.fail(concat("unknown instruction `", name, "`"));
}

// Whether the lexer is at the `%id =` of the next instruction.
bool at_definition(const Lexer& lexer) {
  if (!lexer.peek("%")) return false;
  Lexer ahead = lexer;
  ahead.value_id();
  return ahead.peek("=");
}

Instr parse_instr(Lexer& lexer, size_t id) {
  const bool named = lexer.peek("%");
  if (named) {
    const Lexer here = lexer;
    const uint32_t written = lexer.value_id();
    if (written != id) here.fail(concat("expected %", id, ", the position in the body"));
    lexer.expect("=");
  }
  const Lexer here = lexer;
  Instr instr{payload_named(lexer.ident(), here), {}, {}};
  const bool value = has_value(instr.kind());
  if (value && !named)
    here.fail(concat(name_of(instr.kind()), " has a value: expected %", id, " ="));
  if (!value && named) here.fail(concat(name_of(instr.kind()), " has no value to name"));
  std::visit([&](auto& payload) { text::parse_fields(lexer, payload); }, instr.payload);
  while (lexer.peek("%") && !at_definition(lexer)) instr.args.push_back(Codec<Var>::parse(lexer));
  if (value) {
    lexer.expect(":");
    instr.type = parse_type(lexer);
  }
  return instr;
}

int64_t parse_size(Lexer& lexer, const char* key) {
  lexer.expect_ident(key);
  lexer.expect("=");
  return lexer.integer();
}

Kernel parse_kernel(Lexer& lexer) {
  Kernel kernel;
  lexer.expect_ident("kernel");
  lexer.expect("@");
  kernel.name = lexer.peek("\"") ? lexer.string_literal() : lexer.ident();
  kernel.grid = parse_size(lexer, "grid");
  kernel.local = parse_size(lexer, "local");
  if (lexer.lookahead_ident() == "arguments") {
    lexer.expect_ident("arguments");
    lexer.expect("=");
    kernel.arguments = Codec<Ints>::parse(lexer);
  }
  lexer.expect("{");
  while (!lexer.accept("}")) kernel.body.push_back(parse_instr(lexer, kernel.body.size()));
  return kernel;
}

}  // namespace

std::string type_text(const Type& type) {
  return concat(type.pointer ? "ptr " : "", name_of(type.dtype),
                type.lanes == 1 ? "" : concat('x', type.lanes));
}

std::string print(const Kernel& kernel) {
  std::string out = "kernel @";
  out += is_identifier(kernel.name) ? kernel.name : text::quote(kernel.name);
  out += concat(" grid=", kernel.grid, " local=", kernel.local);
  if (!kernel.arguments.empty()) {
    out += " arguments=";
    Codec<Ints>::print(out, kernel.arguments);
  }
  out += " {\n";
  int depth = 1;
  for (size_t i = 0; i < kernel.body.size(); ++i) {
    const Instr& instr = kernel.body[i];
    const InstrKind kind = instr.kind();
    if (closes_scope(kind)) depth = std::max(depth - 1, 1);
    out.append(2 * depth, ' ');
    print_instr_to(out, instr, i);
    out += '\n';
    if (opens_scope(kind)) ++depth;
  }
  return out + "}\n";
}

std::string print_instr(const Kernel& kernel, Var v) {
  std::string out;
  print_instr_to(out, kernel[v], v.id);
  return out;
}

Kernel parse(std::string_view text) {
  Lexer lexer(text);
  Kernel kernel = parse_kernel(lexer);
  if (!lexer.at_end()) lexer.fail("expected the end of the text");
  return kernel;
}

std::vector<Kernel> parse_all(std::string_view text) {
  Lexer lexer(text);
  std::vector<Kernel> kernels;
  while (!lexer.at_end()) kernels.push_back(parse_kernel(lexer));
  return kernels;
}

}  // namespace rune::lower
