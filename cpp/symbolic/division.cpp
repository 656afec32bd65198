// Floor division, remainder, and the joining of the two. Every rewrite is exact for all values
// within the bounds of the variables.
#include <algorithm>

#include "symbolic/arith.h"
#include "types/shape.h"

namespace rune::sym {
namespace detail {
namespace {

using Kind = Atom::Kind;
using Term = Expr::Term;

// expr = divisor * quotient + rest, where no coefficient of rest reaches the divisor in magnitude
// and its constant lies in [0, divisor).
struct Reduced {
  Expr quotient, rest;
};

Reduced reduce_coefficients(const Expr& expr, int64_t divisor) {
  Reduced result{Expr(), expr};
  for (;;) {
    const Expr& rest = result.rest;
    const bool reduced = std::all_of(rest.terms().begin(), rest.terms().end(), [&](const Term& t) {
      return t.coefficient < divisor && t.coefficient > -divisor;
    });
    if (reduced && rest.constant() >= 0 && rest.constant() < divisor) return result;
    std::vector<Term> quotients, rests;
    for (const Term& t : rest.terms()) {
      if (t.coefficient / divisor != 0) quotients.push_back({t.coefficient / divisor, t.atom});
      if (t.coefficient % divisor != 0) rests.push_back({t.coefficient % divisor, t.atom});
    }
    const int64_t constant = rest.constant();
    result.quotient =
        result.quotient + Expr::from_terms(floor_quotient(constant, divisor), std::move(quotients));
    // Joined terms may exceed the divisor again, so this is in a loop. The loop ends because each
    // time there are fewer terms.
    result.rest = Expr::from_terms(floor_remainder(constant, divisor), std::move(rests));
  }
}

Expr without(const Expr& sum, const Term& term) {
  std::vector<Term> others;
  for (const Term& t : sum.terms()) {
    if (&t != &term) others.push_back(t);
  }
  return Expr::from_terms(sum.constant(), std::move(others));
}

// A block split by the greatest divisor g > 1 of the divisor for which bounds prove it.
struct FactorSplit {
  int64_t g;
  BlockSplit parts;
};

std::optional<FactorSplit> split_by_factor(const Expr& rest, int64_t divisor) {
  for (const int64_t g : common_factors(rest, divisor)) {
    if (auto parts = split_by_block(rest, g)) return FactorSplit{g, *std::move(parts)};
  }
  return std::nullopt;
}

bool share_variables(const Expr& a, const Expr& b) {
  const auto of_a = a.variables(), of_b = b.variables();
  return std::any_of(of_a.begin(), of_a.end(),
                     [&](uint32_t v) { return std::binary_search(of_b.begin(), of_b.end(), v); });
}

// (k*(x % e) + r) // d = ((k*x + r) // d) % (k*e / d), if d divides k*e and r lies in [0, k). Not
// done if r depends on x too, because r could then no longer join with x % e.
std::optional<Expr> pull_out_remainder(const Expr& rest, int64_t divisor) {
  for (const Term& t : rest.terms()) {
    if (t.atom->kind != Kind::Mod || t.coefficient <= 0) continue;
    const auto period = try_multiply(t.coefficient, t.atom->divisor);
    if (!period || *period % divisor != 0) continue;
    const Expr others = without(rest, t);
    if (single_block(others.bounds(), t.coefficient) != 0) continue;
    if (share_variables(others, t.atom->inner)) continue;
    return mod(floordiv(t.atom->inner * t.coefficient + others, divisor), *period / divisor);
  }
  return std::nullopt;
}

// (x // a + e) // b = (x + a*e) // (a*b), if exactly one term is a quotient with coefficient 1.
std::optional<Expr> merge_nested_quotient(const Expr& rest, int64_t divisor) {
  const Term* quotient = nullptr;
  for (const Term& t : rest.terms()) {
    if (t.atom->kind != Kind::Div || t.coefficient != 1) continue;
    if (quotient) return std::nullopt;
    quotient = &t;
  }
  if (!quotient) return std::nullopt;
  const int64_t a = quotient->atom->divisor;
  if (!try_multiply(a, divisor)) return std::nullopt;
  const auto constant = try_multiply(rest.constant(), a);
  if (!constant || !try_add(*constant, quotient->atom->inner.constant())) return std::nullopt;
  std::vector<Term> others;
  for (const Term& t : rest.terms()) {
    if (&t == quotient) continue;
    // Far from the limits of the type, so that the sum below cannot overflow either.
    const auto scaled = try_multiply(t.coefficient, a);
    if (!scaled || *scaled > kMax / 4 || *scaled < kMin / 4) return std::nullopt;
    others.push_back({*scaled, t.atom});
  }
  const Expr sum = Expr::from_terms(*constant, std::move(others)) + quotient->atom->inner;
  return floordiv(sum, a * divisor);
}

// (k*(x % e) + r) % d = (k*x + r) % d, if d divides k*e. Not done if r depends on x too, because r
// could then no longer join with x % e.
std::optional<Expr> expand_remainder(const Expr& rest, int64_t divisor) {
  for (const Term& t : rest.terms()) {
    if (t.atom->kind != Kind::Mod) continue;
    const auto period = try_multiply(t.coefficient, t.atom->divisor);
    if (!period || *period % divisor != 0) continue;
    if (share_variables(without(rest, t), t.atom->inner)) continue;
    return mod(without(rest, t) + t.atom->inner * t.coefficient, divisor);
  }
  return std::nullopt;
}

bool is_atom(const Expr& expr, const Atom& atom) {
  return expr.constant() == 0 && expr.terms().size() == 1 && expr.terms()[0].coefficient == 1 &&
         expr.terms()[0].atom->hash == atom.hash && compare(*expr.terms()[0].atom, atom) == 0;
}

// Finds and joins quotients and remainders of the same value in a sum.
class Recombiner {
 public:
  Recombiner(int64_t constant, const std::vector<Term>& terms)
      : constant_(constant), terms_(terms) {}

  std::optional<Expr> run() const {
    for (size_t i = 0; i < terms_.size(); ++i) {
      if (terms_[i].atom->kind == Kind::Variable) continue;
      if (auto result = join_with_whole(i)) return result;
      if (terms_[i].atom->kind != Kind::Mod) continue;
      const auto wanted = try_multiply(terms_[i].coefficient, terms_[i].atom->divisor);
      if (!wanted) continue;
      for (size_t j = 0; j < terms_.size(); ++j) {
        if (terms_[j].coefficient != *wanted) continue;
        if (terms_[j].atom->kind == Kind::Div) {
          if (auto result = join_remainder_and_quotient(i, j)) return result;
        } else if (terms_[j].atom->kind == Kind::Mod) {
          if (auto result = join_remainders(i, j)) return result;
        }
      }
    }
    return std::nullopt;
  }

 private:
  // The sum without terms i and j, plus factor * value.
  Expr replace(size_t i, size_t j, int64_t factor, const Expr& value) const {
    std::vector<Term> others;
    others.reserve(terms_.size());
    for (size_t t = 0; t < terms_.size(); ++t) {
      if (t != i && t != j) others.push_back(terms_[t]);
    }
    return Expr::from_terms(constant_, std::move(others)) + value * factor;
  }

  // k*(y % c) + k*c*(y // c) = k*y. The quotient may be written as z // (c*b) with y = z // b. The
  // remainder may lack terms of y. So y is taken from the quotient or from the remainder.
  std::optional<Expr> join_remainder_and_quotient(size_t i, size_t j) const {
    const Atom &remainder = *terms_[i].atom, &quotient = *terms_[j].atom;
    const int64_t c = remainder.divisor;
    if (is_atom(floordiv(remainder.inner, c), quotient)) {
      return replace(i, j, terms_[i].coefficient, remainder.inner);
    }
    if (quotient.divisor % c != 0) return std::nullopt;
    const Expr y = floordiv(quotient.inner, quotient.divisor / c);
    if (!is_atom(mod(y, c), remainder)) return std::nullopt;
    return replace(i, j, terms_[i].coefficient, y);
  }

  // k*(y % c) + k*c*((y // c + e) % d) = k*((y + c*e) % (c*d)), with y as above.
  std::optional<Expr> join_remainders(size_t i, size_t j) const {
    const Atom &low = *terms_[i].atom, &high = *terms_[j].atom;
    const int64_t c = low.divisor, k = terms_[i].coefficient;
    const auto divisor = try_multiply(c, high.divisor);
    if (!divisor) return std::nullopt;
    const Expr quotient = floordiv(low.inner, c);
    for (const Term& t : high.inner.terms()) {
      if (t.atom->kind != Kind::Div || t.coefficient != 1) continue;
      const Expr others = without(high.inner, t) * c;
      if (is_atom(quotient, *t.atom)) return replace(i, j, k, mod(low.inner + others, *divisor));
      if (t.atom->divisor % c != 0) continue;
      const Expr y = floordiv(t.atom->inner, t.atom->divisor / c) + others;
      if (is_atom(mod(y, c), low)) return replace(i, j, k, mod(y, *divisor));
    }
    return std::nullopt;
  }

  // k*z - k*d*(z // d) = k*(z % d), and k*z - k*(z % d) = k*d*(z // d).
  std::optional<Expr> join_with_whole(size_t i) const {
    const Atom& atom = *terms_[i].atom;
    const bool is_quotient = atom.kind == Kind::Div;
    const int64_t unit = is_quotient ? atom.divisor : 1;
    if (terms_[i].coefficient == kMin || terms_[i].coefficient % unit != 0) return std::nullopt;
    const int64_t k = -(terms_[i].coefficient / unit);
    if (!contains(atom.inner, k)) return std::nullopt;
    const auto shift = try_multiply(atom.inner.constant(), k);
    const auto scale = is_quotient ? std::optional(k) : try_multiply(k, atom.divisor);
    if (!shift || !scale || *shift == kMin) return std::nullopt;
    std::vector<Term> others;
    for (size_t t = 0; t < terms_.size(); ++t) {
      if (t != i && !coefficient_in(atom.inner, *terms_[t].atom)) others.push_back(terms_[t]);
    }
    const Expr joined =
        is_quotient ? mod(atom.inner, atom.divisor) : floordiv(atom.inner, atom.divisor);
    return Expr::from_terms(checked_add(constant_, -*shift), std::move(others)) + joined * *scale;
  }

  static std::optional<int64_t> coefficient_in(const Expr& expr, const Atom& atom) {
    for (const Term& t : expr.terms()) {
      if (t.atom->hash == atom.hash && compare(*t.atom, atom) == 0) return t.coefficient;
    }
    return std::nullopt;
  }

  // Whether the terms of k * expr are all among the terms.
  bool contains(const Expr& expr, int64_t k) const {
    size_t found = 0;
    for (const Term& t : terms_) {
      const auto coefficient = coefficient_in(expr, *t.atom);
      if (!coefficient) continue;
      const auto scaled = try_multiply(*coefficient, k);
      if (!scaled || *scaled != t.coefficient) return false;
      ++found;
    }
    return found == expr.terms().size();
  }

  int64_t constant_;
  const std::vector<Term>& terms_;
};

}  // namespace

std::vector<int64_t> common_factors(const Expr& expr, int64_t whole) {
  std::vector<int64_t> factors;
  const auto insert = [&](int64_t factor) {
    if (factor > 1 && !contains(factors, factor)) {
      factors.push_back(factor);
    }
  };
  for (const Term& t : expr.terms()) {
    const int64_t factor = gcd(t.coefficient, whole);
    const size_t known = factors.size();
    insert(factor);
    for (size_t i = 0; i < known; ++i) insert(gcd(factors[i], factor));
  }
  insert(whole);
  std::sort(factors.begin(), factors.end(), std::greater<>());
  return factors;
}

std::optional<BlockSplit> split_by_block(const Expr& expr, int64_t g) {
  BoundsSum sum(expr.constant());
  for (const Term& t : expr.terms()) {
    if (t.coefficient % g != 0) sum.add(t.coefficient, t.atom->bounds);
  }
  const auto block = single_block(sum.bounds(), g);
  if (!block) return std::nullopt;
  const auto start = try_multiply(*block, g);
  if (!start || *start == kMin || !try_add(expr.constant(), -*start)) return std::nullopt;
  std::vector<Term> multiples, rests;
  for (const Term& t : expr.terms()) {
    if (t.coefficient % g == 0) {
      multiples.push_back({t.coefficient / g, t.atom});
    } else {
      rests.push_back(t);
    }
  }
  return BlockSplit{Expr::from_terms(*block, std::move(multiples)),
                    Expr::from_terms(expr.constant() - *start, std::move(rests))};
}

std::optional<Expr> recombine(int64_t constant, const std::vector<Term>& terms) {
  return Recombiner(constant, terms).run();
}

}  // namespace detail

using detail::make_division;

Expr floordiv(const Expr& a, int64_t divisor) {
  RUNE_CHECK(divisor > 0, "division of an index by ", divisor);
  if (divisor == 1) return a;
  if (a.is_constant()) return Expr(detail::floor_quotient(a.constant(), divisor));
  detail::Reduced reduced = detail::reduce_coefficients(a, divisor);
  const Expr& rest = reduced.rest;
  if (const auto split = detail::split_by_factor(rest, divisor)) {
    return reduced.quotient + floordiv(split->parts.multiple, divisor / split->g);
  }
  if (auto pulled = detail::pull_out_remainder(rest, divisor)) return reduced.quotient + *pulled;
  if (auto merged = detail::merge_nested_quotient(rest, divisor)) return reduced.quotient + *merged;
  return reduced.quotient + make_division(Atom::Kind::Div, rest, divisor);
}

Expr mod(const Expr& a, int64_t divisor) {
  RUNE_CHECK(divisor > 0, "remainder of an index by ", divisor);
  if (divisor == 1) return Expr();
  if (a.is_constant()) return Expr(detail::floor_remainder(a.constant(), divisor));
  const Expr rest = detail::reduce_coefficients(a, divisor).rest;
  if (const auto split = detail::split_by_factor(rest, divisor)) {
    const auto& [g, parts] = *split;
    return mod(parts.multiple, divisor / g) * g + parts.rest;
  }
  if (auto expanded = detail::expand_remainder(rest, divisor)) return *std::move(expanded);
  return make_division(Atom::Kind::Mod, rest, divisor);
}

}  // namespace rune::sym
