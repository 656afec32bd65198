#include "symbolic/expr.h"

#include <algorithm>

#include "base/hash.h"
#include "symbolic/arith.h"
#include "types/shape.h"

namespace rune::sym {
namespace detail {

int compare(const Atom& a, const Atom& b) {
  if (&a == &b) return 0;
  if (a.kind != b.kind) return a.kind < b.kind ? -1 : 1;
  if (a.kind == Atom::Kind::Variable) {
    return a.variable == b.variable ? 0 : a.variable < b.variable ? -1 : 1;
  }
  if (const int order = compare(a.inner, b.inner)) return order;
  return a.divisor == b.divisor ? 0 : a.divisor < b.divisor ? -1 : 1;
}

int compare_terms(const Expr& a, const Expr& b) {
  const size_t common = std::min(a.terms().size(), b.terms().size());
  for (size_t i = 0; i < common; ++i) {
    const Expr::Term &s = a.terms()[i], &t = b.terms()[i];
    if (const int order = compare(*s.atom, *t.atom)) return order;
    if (s.coefficient != t.coefficient) return s.coefficient < t.coefficient ? -1 : 1;
  }
  if (a.terms().size() == b.terms().size()) return 0;
  return a.terms().size() < b.terms().size() ? -1 : 1;
}

int compare(const Expr& a, const Expr& b) {
  if (const int order = compare_terms(a, b)) return order;
  return a.constant() == b.constant() ? 0 : a.constant() < b.constant() ? -1 : 1;
}

Expr of_atom(std::shared_ptr<const Atom> atom) {
  std::vector<Expr::Term> terms;
  terms.push_back({1, std::move(atom)});
  return Expr::from_terms(0, std::move(terms));
}

Expr make_division(Atom::Kind kind, Expr inner, int64_t divisor) {
  Atom atom;
  atom.kind = kind;
  atom.divisor = divisor;
  atom.hash = hash_combine(hash_combine(static_cast<uint64_t>(kind), inner.hash()),
                           static_cast<uint64_t>(divisor));
  if (kind == Atom::Kind::Mod) {
    atom.bounds = {0, divisor - 1};
  } else {
    const Bounds b = inner.bounds();
    atom.bounds = {b.low == kMin ? kMin : floor_quotient(b.low, divisor),
                   b.high == kMax ? kMax : floor_quotient(b.high, divisor)};
  }
  atom.inner = std::move(inner);
  return of_atom(std::make_shared<const Atom>(std::move(atom)));
}

namespace {

bool before(const Expr::Term& a, const Expr::Term& b) {
  return compare(*a.atom, *b.atom) < 0;
}

// Sorts by atom and adds up the coefficients of equal ones.
void canonicalize_terms(std::vector<Expr::Term>& terms) {
  if (!std::is_sorted(terms.begin(), terms.end(), before)) {
    std::sort(terms.begin(), terms.end(), before);
  }
  size_t kept = 0;
  for (size_t i = 0; i < terms.size(); ++i) {
    if (kept > 0 && compare(*terms[kept - 1].atom, *terms[i].atom) == 0) {
      terms[kept - 1].coefficient = checked_add(terms[kept - 1].coefficient, terms[i].coefficient);
    } else {
      if (kept > 0 && terms[kept - 1].coefficient == 0) --kept;
      if (kept != i) terms[kept] = std::move(terms[i]);
      ++kept;
    }
  }
  if (kept > 0 && terms[kept - 1].coefficient == 0) --kept;
  terms.resize(kept);
}

bool atom_depends_on(const Atom& atom, uint32_t variable) {
  return atom.kind == Atom::Kind::Variable ? atom.variable == variable
                                           : atom.inner.depends_on(variable);
}

void collect_variables(const Expr& expr, std::vector<uint32_t>& out) {
  for (const Expr::Term& term : expr.terms()) {
    if (term.atom->kind == Atom::Kind::Variable) {
      out.push_back(term.atom->variable);
    } else {
      collect_variables(term.atom->inner, out);
    }
  }
}

Expr apply_division(const Atom& atom, const Expr& inner) {
  return atom.kind == Atom::Kind::Div ? floordiv(inner, atom.divisor) : mod(inner, atom.divisor);
}

using Replacement = std::function<std::optional<Expr>(uint32_t)>;

// The expression with variables replaced. Nothing if none of them occurs, so that unchanged atoms
// stay shared.
std::optional<Expr> substitute_changed(const Expr& expr, const Replacement& replacement) {
  std::optional<Expr> replaced;  // Sum of the terms that changed.
  std::vector<Expr::Term> kept;
  for (size_t i = 0; i < expr.terms().size(); ++i) {
    const Expr::Term& term = expr.terms()[i];
    std::optional<Expr> atom;
    if (term.atom->kind == Atom::Kind::Variable) {
      atom = replacement(term.atom->variable);
    } else if (auto inner = substitute_changed(term.atom->inner, replacement)) {
      atom = apply_division(*term.atom, *inner);
    }
    if (!atom) {
      kept.push_back(term);
    } else {
      replaced = replaced ? *replaced + *atom * term.coefficient : *atom * term.coefficient;
    }
  }
  if (!replaced) return std::nullopt;
  return Expr::from_terms(expr.constant(), std::move(kept)) + *replaced;
}

}  // namespace
}  // namespace detail

using detail::checked_add;
using detail::checked_multiply;

Expr Expr::from_terms(int64_t constant, std::vector<Term> terms) {
  if (terms.size() > 1 || (terms.size() == 1 && terms[0].coefficient == 0)) {
    detail::canonicalize_terms(terms);
    if (terms.size() > 1) {
      if (auto joined = detail::recombine(constant, terms)) return *std::move(joined);
    }
  }
  Expr result(constant);
  if (!terms.empty()) result.terms_ = std::make_shared<const std::vector<Term>>(std::move(terms));
  return result;
}

const std::vector<Expr::Term>& Expr::no_terms() {
  static const std::vector<Term> none;
  return none;
}

Expr Expr::variable(uint32_t id, Bounds bounds) {
  // The index of an axis without elements never takes a value, so any constant describes it.
  if (bounds.low >= bounds.high) return Expr(bounds.low);
  auto atom = std::make_shared<Atom>();
  atom->variable = id;
  atom->bounds = bounds;
  atom->hash = hash_combine(0x51ed270b, id);
  return detail::of_atom(std::move(atom));
}

Bounds Expr::bounds() const {
  detail::BoundsSum sum(constant_);
  for (const Term& term : terms()) sum.add(term.coefficient, term.atom->bounds);
  return sum.bounds();
}

std::optional<int64_t> Expr::coefficient_of(uint32_t variable) const {
  int64_t result = 0;
  for (const Term& term : terms()) {
    if (!detail::atom_depends_on(*term.atom, variable)) continue;
    if (term.atom->kind != Atom::Kind::Variable) return std::nullopt;
    result = term.coefficient;
  }
  return result;
}

bool Expr::depends_on(uint32_t variable) const {
  return std::any_of(terms().begin(), terms().end(), [&](const Term& term) {
    return detail::atom_depends_on(*term.atom, variable);
  });
}

std::vector<uint32_t> Expr::variables() const {
  std::vector<uint32_t> result;
  detail::collect_variables(*this, result);
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

std::optional<uint32_t> Expr::as_variable() const {
  if (constant_ != 0 || terms().size() != 1 || terms()[0].coefficient != 1) return std::nullopt;
  if (terms()[0].atom->kind != Atom::Kind::Variable) return std::nullopt;
  return terms()[0].atom->variable;
}

int64_t Expr::known_divisor() const {
  // A common factor never stays inside an atom, so an atom's own known divisor is 1.
  int64_t result = detail::gcd(constant_, 0);
  for (const Term& term : terms()) result = detail::gcd(result, term.coefficient);
  return result;
}

Expr Expr::substitute(const std::function<std::optional<Expr>(uint32_t)>& replacement) const {
  auto result = detail::substitute_changed(*this, replacement);
  return result ? *std::move(result) : *this;
}

size_t Expr::hash() const {
  uint64_t h = hash_combine(0x2545f491, static_cast<uint64_t>(constant_));
  for (const Term& term : terms()) {
    h = hash_combine(h, static_cast<uint64_t>(term.coefficient));
    h = hash_combine(h, term.atom->hash);
  }
  return h;
}

bool Expr::operator==(const Expr& other) const {
  if (constant_ != other.constant_) return false;
  if (terms_ == other.terms_) return true;
  if (terms().size() != other.terms().size()) return false;
  for (size_t i = 0; i < terms().size(); ++i) {
    const Term &a = terms()[i], &b = other.terms()[i];
    if (a.coefficient != b.coefficient || a.atom->hash != b.atom->hash) return false;
    if (detail::compare(*a.atom, *b.atom) != 0) return false;
  }
  return true;
}

Expr operator+(const Expr& a, const Expr& b) {
  const int64_t constant = checked_add(a.constant_, b.constant_);
  // Adding a constant cannot make two terms join.
  if (a.is_constant() || b.is_constant()) {
    Expr result = a.is_constant() ? b : a;
    result.constant_ = constant;
    return result;
  }
  std::vector<Expr::Term> terms;
  terms.reserve(a.terms().size() + b.terms().size());
  std::merge(a.terms().begin(), a.terms().end(), b.terms().begin(), b.terms().end(),
             std::back_inserter(terms), detail::before);
  return Expr::from_terms(constant, std::move(terms));
}

Expr operator-(const Expr& a, const Expr& b) {
  return a + b * -1;
}

Expr operator*(const Expr& a, int64_t factor) {
  if (factor == 0) return Expr();
  // Whether terms join depends only on the ratios of their coefficients, so no new ones can join.
  if (factor == 1) return a;
  Expr result(checked_multiply(a.constant_, factor));
  if (a.is_constant()) return result;
  std::vector<Expr::Term> terms = a.terms();
  for (Expr::Term& term : terms) term.coefficient = checked_multiply(term.coefficient, factor);
  result.terms_ = std::make_shared<const std::vector<Expr::Term>>(std::move(terms));
  return result;
}

Expr flatten_index(const std::vector<Expr>& index, const std::vector<int64_t>& shape) {
  RUNE_CHECK(index.size() == shape.size(), "an index of ", index.size(),
             " coordinates in a shape of ", shape.size(), " axes");
  if (contains(shape, 0)) return Expr();
  Expr position;
  int64_t stride = 1;
  for (size_t axis = shape.size(); axis-- > 0;) {
    if (shape[axis] == 1) continue;
    position = position + index[axis] * stride;
    stride = checked_multiply(stride, shape[axis]);
  }
  return position;
}

std::vector<Expr> unflatten_index(const Expr& position, const std::vector<int64_t>& shape) {
  std::vector<Expr> index(shape.size());
  if (contains(shape, 0)) return index;
  size_t outermost = 0;
  while (outermost < shape.size() && shape[outermost] == 1) ++outermost;
  Expr rest = position;
  for (size_t axis = shape.size(); axis-- > outermost;) {
    if (shape[axis] == 1) continue;
    index[axis] = axis == outermost ? rest : mod(rest, shape[axis]);
    if (axis != outermost) rest = floordiv(rest, shape[axis]);
  }
  return index;
}

}  // namespace rune::sym
