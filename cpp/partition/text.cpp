#include "graph/text.h"
#include "base/error.h"
#include "partition/partition.h"

namespace rune::partition {

namespace {

const char* name_of(Array::Kind kind) {
  switch (kind) {
    case Array::Kind::Argument: return "argument";
    case Array::Kind::Computed: return "computed";
    case Array::Kind::Combined: return "combined";
  }
  RUNE_UNREACHABLE("an array");
}

}  // namespace

std::string print(const Plan& plan) {
  std::string out = "partition {\n";
  for (size_t i = 0; i < plan.arrays.size(); ++i) {
    const Array& array = plan.arrays[i];
    out += concat("  array ", i, " ", name_of(array.kind));
    if (array.kind == Array::Kind::Argument) out += concat(" ", array.number);
    out += concat(" : ", rune::name_of(array.dtype), " ", text::to_text(array.chunks), "\n");
  }
  for (const Pass& pass : plan.passes) {
    out += concat("  pass level=", pass.level, " grid=", text::to_text(pass.grid));
    if (pass.call)
      out += concat(" call=\"", pass.call->name, "\" number=", pass.call->number,
                    " results=", text::to_text(pass.call->results));
    out += " {\n";
    for (const Result& result : pass.results) {
      out += concat("    result array=", result.array, " axes=", text::to_text(result.grid_axes));
      if (result.combine)
        out += concat(" combine=", rune::name_of(*result.combine),
                      " along=", text::to_text(result.reduced));
      out += "\n";
    }
    for (size_t i = 0; i < pass.operands.size(); ++i) {
      out += concat("    block ", i);
      if (!pass.call) out += concat(" program=", pass.programs[i]);
      for (const Operand& operand : pass.operands[i])
        out += concat(" ", operand.array, text::to_text(operand.box));
      out += "\n";
    }
    out += "  }\n";
  }
  out += concat("  outputs ", text::to_text(plan.outputs), "\n}\n");
  for (size_t i = 0; i < plan.programs.size(); ++i)
    out += concat("; program ", i, "\n", graph::print(plan.programs[i]));
  return out;
}

}  // namespace rune::partition
