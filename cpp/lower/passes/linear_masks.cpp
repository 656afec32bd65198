#include "lower/passes/linear_masks.h"

#include <algorithm>

namespace rune::lower {

namespace {

// With coefficients and constants of at most this magnitude, sums over loops' variables cannot
// overflow.
constexpr int64_t kMostCoefficient = int64_t{1} << 31;

bool fits(int64_t x) {
  return -kMostCoefficient <= x && x <= kMostCoefficient;
}

std::optional<Linear> if_fits(Linear x) {
  for (const auto& [variable, coefficient] : x.variables)
    if (!fits(coefficient)) return std::nullopt;
  if (!std::all_of(x.lanes.begin(), x.lanes.end(), fits)) return std::nullopt;
  return x;
}

// a + sign * b
std::optional<Linear> combine(const Linear& a, const Linear& b, int64_t sign) {
  Linear sum = a;
  for (const auto& [variable, coefficient] : b.variables) {
    int64_t& total = sum.variables[variable];
    total += sign * coefficient;
    if (total == 0) sum.variables.erase(variable);
  }
  sum.lanes.assign(std::max(a.lanes.size(), b.lanes.size()), 0);
  for (size_t i = 0; i < sum.lanes.size(); ++i) sum.lanes[i] = a.lane(i) + sign * b.lane(i);
  return if_fits(std::move(sum));
}

std::optional<Linear> scale(Linear a, int64_t factor) {
  if (factor == 0) return Linear{{}, {0}};
  for (auto& [variable, coefficient] : a.variables) coefficient *= factor;
  for (int64_t& x : a.lanes) x *= factor;
  return if_fits(std::move(a));
}

bool is_and(const Instr& instr) {
  const auto* alu = instr.as<Alu>();
  return alu && alu->op == AluOp::And && is_bool(instr.type.dtype);
}

}  // namespace

std::optional<Var> mask_of(const Instr& instr) {
  const bool masked = (instr.kind() == InstrKind::Load && instr.args.size() == 3) ||
                      (instr.kind() == InstrKind::Store && instr.args.size() == 4);
  return masked ? std::optional(instr.args.back()) : std::nullopt;
}

void LinearMasks::collect(const Instr& instr, std::set<uint32_t>& comparisons) {
  const auto* alu = instr.as<Alu>();
  if (const auto mask = mask_of(instr)) collect_from(*mask, comparisons);
  if (alu && alu->op == AluOp::Where) collect_from(instr.args[0], comparisons);
}

void LinearMasks::collect_from(Var mask, std::set<uint32_t>& comparisons) {
  const Instr& instr = kernel_[mask];
  if (is_and(instr)) {
    for (const Var arg : instr.args) collect_from(arg, comparisons);
  } else if (instr.as<Splat>()) {
    collect_from(instr.args[0], comparisons);
  } else if (condition(mask)) {
    comparisons.insert(mask.id);
  }
}

std::optional<Condition> LinearMasks::condition(Var mask) {
  const Instr& instr = kernel_[mask];
  const auto* alu = instr.as<Alu>();
  if (!alu || (alu->op != AluOp::Cmplt && alu->op != AluOp::Cmple)) return std::nullopt;
  const auto small = linear(instr.args[0]), large = linear(instr.args[1]);
  if (!small || !large) return std::nullopt;
  const auto difference = combine(*large, *small, -1);
  if (!difference) return std::nullopt;
  const auto [least, greatest] =
      std::minmax_element(difference->lanes.begin(), difference->lanes.end());
  const int64_t strict = alu->op == AluOp::Cmplt ? 1 : 0;
  return Condition{difference->variables, *least - strict, *greatest - strict};
}

std::optional<bool> LinearMasks::value(Var mask, const Outcomes& outcomes) const {
  if (outcomes.hold.count(mask.id)) return true;
  if (outcomes.fail.count(mask.id)) return false;
  const Instr& instr = kernel_[mask];
  if (instr.as<Splat>()) return value(instr.args[0], outcomes);
  if (!is_and(instr)) return std::nullopt;
  const auto a = value(instr.args[0], outcomes), b = value(instr.args[1], outcomes);
  if (a == false || b == false) return false;
  if (a == true && b == true) return true;
  return std::nullopt;
}

std::optional<Linear> LinearMasks::linear(Var v) {
  if (!known_[v.id]) known_[v.id] = compute(kernel_[v]);
  if (*known_[v.id]) return *known_[v.id];
  const Instr& instr = kernel_[v];
  const InstrKind kind = instr.kind();
  const auto* special = instr.as<Special>();
  const bool bounded =
      kind == InstrKind::Range || (special && special->kind != SpecialKind::Previous_workgroup_idx);
  if (bounded && instr.type.dtype == DType::Int64) return Linear{{{v.id, 1}}, {0}};
  return std::nullopt;
}

std::optional<Linear> LinearMasks::compute(const Instr& instr) {
  if (instr.type.dtype != DType::Int64 || instr.type.pointer) return std::nullopt;
  if (const auto* constant = instr.as<Const>()) return if_fits({{}, {constant->value.as_int64()}});
  if (const auto* vector = instr.as<Vconst>()) {
    Linear result;
    for (const Scalar& x : vector->values) result.lanes.push_back(x.as_int64());
    return if_fits(std::move(result));
  }
  if (instr.as<Splat>()) return linear(instr.args[0]);
  const auto* alu = instr.as<Alu>();
  if (!alu || instr.args.size() != 2) return std::nullopt;
  if (alu->op != AluOp::Add && alu->op != AluOp::Sub && alu->op != AluOp::Mul) return std::nullopt;
  const auto a = linear(instr.args[0]), b = linear(instr.args[1]);
  if (!a || !b) return std::nullopt;
  if (alu->op != AluOp::Mul) return combine(*a, *b, alu->op == AluOp::Add ? 1 : -1);
  const auto uniform = [](const Linear& x) { return x.variables.empty() && x.lanes.size() == 1; };
  if (uniform(*b)) return scale(*a, b->lanes[0]);
  if (uniform(*a)) return scale(*b, a->lanes[0]);
  return std::nullopt;
}

}  // namespace rune::lower
