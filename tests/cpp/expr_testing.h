// Values and texts of index expressions and masks.
#pragma once

#include <algorithm>
#include <functional>
#include <ostream>
#include <string>

#include "symbolic/expr.h"

namespace rune::sym {

using ValueOf = std::function<int64_t(uint32_t)>;

inline int64_t evaluate(const Expr& expr, const ValueOf& value) {
  // Unsigned, since only the final value is known to fit.
  auto sum = static_cast<uint64_t>(expr.constant());
  for (const Expr::Term& term : expr.terms()) {
    const Atom& atom = *term.atom;
    int64_t v = atom.kind == Atom::Kind::Variable ? value(atom.variable) : 0;
    if (atom.kind != Atom::Kind::Variable) {
      const int64_t inner = evaluate(atom.inner, value), rest = inner % atom.divisor;
      const int64_t remainder = rest + (rest < 0 ? atom.divisor : 0);
      v = atom.kind == Atom::Kind::Mod ? remainder : inner / atom.divisor - (rest < 0);
    }
    sum += static_cast<uint64_t>(term.coefficient) * static_cast<uint64_t>(v);
  }
  return static_cast<int64_t>(sum);
}

inline bool evaluate(const Mask& mask, const ValueOf& value) {
  return !mask.is_false() &&
         std::all_of(mask.conditions().begin(), mask.conditions().end(),
                     [&](const Expr& condition) { return evaluate(condition, value) >= 0; });
}

inline bool has_division(const Expr& expr) {
  return std::any_of(expr.terms().begin(), expr.terms().end(), [](const Expr::Term& term) {
    return term.atom->kind != Atom::Kind::Variable;
  });
}

// Such as `2*v0 + v1//4 + 3`.
inline std::string text_of(const Expr& expr) {
  const auto atom_text = [&](const Atom& atom) {
    if (atom.kind == Atom::Kind::Variable) return "v" + std::to_string(atom.variable);
    std::string inner = text_of(atom.inner);
    if (!atom.inner.as_variable()) inner = "(" + inner + ")";
    return inner + (atom.kind == Atom::Kind::Div ? "//" : "%") + std::to_string(atom.divisor);
  };
  std::string out;
  for (const Expr::Term& term : expr.terms()) {
    const bool negative = term.coefficient < 0;
    std::string body = atom_text(*term.atom);
    // `-x//4` and `2*x//4` would read as divisions of the product.
    const bool leading_minus = negative && out.empty();
    const bool factor = term.coefficient != 1 && term.coefficient != -1;
    if (term.atom->kind != Atom::Kind::Variable && (factor || leading_minus))
      body = "(" + body + ")";
    if (factor) {
      const std::string digits = std::to_string(term.coefficient);
      body = (negative ? digits.substr(1) : digits) + "*" + body;
    }
    out += leading_minus ? "-" : out.empty() ? "" : negative ? " - " : " + ";
    out += body;
  }
  if (out.empty()) return std::to_string(expr.constant());
  if (expr.constant() == 0) return out;
  const std::string digits = std::to_string(expr.constant());
  return out + (expr.constant() < 0 ? " - " + digits.substr(1) : " + " + digits);
}

inline std::string text_of(const Mask& mask) {
  if (mask.is_false()) return "false";
  std::string out;
  for (const Expr& condition : mask.conditions())
    out += (out.empty() ? "" : " and ") + text_of(condition) + " >= 0";
  return out.empty() ? "true" : out;
}

}  // namespace rune::sym
