#include "lower/constant.h"

#include "alu/eval.h"

namespace rune::lower {

namespace {

using Lanes = std::vector<Scalar>;

constexpr int kMostInstructions = 32;

std::optional<Lanes> constant_lanes(const Kernel& kernel, Var v, int& left) {
  const Instr& instr = kernel[v];
  if (const auto* c = instr.as<Const>()) return Lanes(instr.type.lanes, c->value);
  if (const auto* c = instr.as<Vconst>()) return c->values;
  const auto* alu = instr.as<Alu>();
  if ((!alu && instr.kind() != InstrKind::Splat) || --left < 0) return std::nullopt;
  std::vector<Lanes> args;
  for (const Var arg : instr.args) {
    std::optional<Lanes> lanes = constant_lanes(kernel, arg, left);
    if (!lanes) return std::nullopt;
    args.push_back(std::move(*lanes));
  }
  if (!alu) return Lanes(instr.type.lanes, args[0][0]);
  Lanes result;
  for (int lane = 0; lane < instr.type.lanes; ++lane) {
    std::vector<Scalar> operands;
    for (const Lanes& arg : args) operands.push_back(arg[lane]);
    result.push_back(evaluate(alu->op, operands));
  }
  return result;
}

}  // namespace

std::optional<std::vector<Scalar>> constant_lanes(const Kernel& kernel, Var v) {
  int left = kMostInstructions;
  return constant_lanes(kernel, v, left);
}

}  // namespace rune::lower
