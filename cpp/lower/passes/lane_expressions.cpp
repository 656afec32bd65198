#include "lower/passes/lane_expressions.h"

namespace rune::lower {

using sym::Expr;
using sym::Mask;

namespace {

// The lane variable on which an expression depends, if any. Ids of variables are sorted.
std::optional<uint32_t> lane_variable(const Expr& expr) {
  const std::vector<uint32_t> variables = expr.variables();
  if (variables.empty() || !is_lane(variables.back())) return std::nullopt;
  return variables.back();
}

bool depends_on_vectors(const Expr& expr) {
  for (const uint32_t v : expr.variables())
    if (v >= kFirstVectorVariable && !is_lane(v)) return true;
  return false;
}

std::optional<Expr> lane_as(uint32_t variable, const Expr& number) {
  if (!is_lane(variable)) return std::nullopt;
  return number;
}

}  // namespace

bool is_lane(uint32_t variable) {
  return variable >= kFirstLaneVariable;
}

bool depends_on_lane(const Expr& expr) {
  return lane_variable(expr) || depends_on_vectors(expr);
}

std::optional<int64_t> lane_stride(const Expr& expr) {
  if (depends_on_vectors(expr)) return std::nullopt;
  const auto variable = lane_variable(expr);
  return variable ? expr.coefficient_of(*variable) : 0;
}

Expr with_lane(const Expr& expr, const Expr& number) {
  return expr.substitute([&](uint32_t v) { return lane_as(v, number); });
}

Mask with_lane(const Mask& mask, const Expr& number) {
  return mask.substitute([&](uint32_t v) { return lane_as(v, number); });
}

}  // namespace rune::lower
