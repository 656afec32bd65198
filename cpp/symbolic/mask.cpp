#include <algorithm>

#include "base/hash.h"
#include "symbolic/arith.h"

namespace rune::sym {
namespace {

using detail::try_multiply;
using Term = Expr::Term;

// q // d + e >= 0 means q + d*e >= 0, and -(q // d) + e >= 0 means d*(e+1) - 1 - q >= 0. Nothing if
// no quotient has the coefficient 1 or -1, or if the result would overflow.
std::optional<Expr> without_quotient(const Expr& condition) {
  for (const Term& term : condition.terms()) {
    const int64_t sign = term.coefficient;
    if (term.atom->kind != Atom::Kind::Div || (sign != 1 && sign != -1)) continue;
    const int64_t d = term.atom->divisor;
    const Expr others = condition - detail::of_atom(term.atom) * sign;
    constexpr int64_t kLimit = int64_t{1} << 61;
    const auto fits = [&](int64_t v) {
      const auto scaled = try_multiply(v, d);
      return scaled && *scaled < kLimit && *scaled > -kLimit;
    };
    if (d >= kLimit || !fits(others.constant()) ||
        !std::all_of(others.terms().begin(), others.terms().end(),
                     [&](const Term& t) { return fits(t.coefficient); })) {
      continue;
    }
    const Expr scaled = others * d;
    return sign == 1 ? scaled + term.atom->inner : scaled + (d - 1) - term.atom->inner;
  }
  return std::nullopt;
}

// g*q + r >= 0 with r in [0, g) means q >= 0. This removes parts that cannot matter, and common
// factors.
std::optional<Expr> without_fraction(const Expr& condition) {
  for (const int64_t g : detail::common_factors(condition, 0)) {
    if (auto split = detail::split_by_block(condition, g)) return std::move(split->multiple);
  }
  return std::nullopt;
}

Expr normalize(Expr condition) {
  for (;;) {
    if (auto simpler = without_quotient(condition)) {
      condition = *std::move(simpler);
    } else if (auto reduced = without_fraction(condition)) {
      condition = *std::move(reduced);
    } else {
      return condition;
    }
  }
}

// Whether t + c1 >= 0 and -t + c2 >= 0 exclude one another.
bool contradict(const Expr& a, const Expr& b) {
  if (a.terms().size() != b.terms().size()) return false;
  for (size_t i = 0; i < a.terms().size(); ++i) {
    const Term &s = a.terms()[i], &t = b.terms()[i];
    if (s.atom->hash != t.atom->hash || s.coefficient == detail::kMin) return false;
    if (-s.coefficient != t.coefficient || detail::compare(*s.atom, *t.atom) != 0) return false;
  }
  const auto width = detail::try_add(a.constant(), b.constant());
  return width ? *width < 0 : a.constant() < 0;
}

}  // namespace

Mask Mask::never() {
  Mask mask;
  mask.never_ = true;
  return mask;
}

void Mask::require_nonnegative(const Expr& expr) {
  if (never_) return;
  const Expr condition = normalize(expr);
  const Bounds bounds = condition.bounds();
  if (bounds.low >= 0) return;
  bool impossible = bounds.high < 0;
  for (const Expr& other : conditions_) impossible = impossible || contradict(other, condition);
  if (impossible) {
    *this = never();
    return;
  }
  const auto place = std::lower_bound(
      conditions_.begin(), conditions_.end(), condition,
      [](const Expr& a, const Expr& b) { return detail::compare_terms(a, b) < 0; });
  if (place == conditions_.end() || detail::compare_terms(*place, condition) != 0) {
    conditions_.insert(place, condition);
  } else if (condition.constant() < place->constant()) {
    *place = condition;  // The smaller constant is the stronger condition.
  }
}

void Mask::require_between(const Expr& expr, int64_t low, int64_t high) {
  if (low >= high) {
    *this = never();
    return;
  }
  require_nonnegative(expr - low);
  require_nonnegative(Expr(high - 1) - expr);
}

void Mask::require(const Mask& other) {
  if (other.never_) *this = never();
  for (const Expr& condition : other.conditions_) require_nonnegative(condition);
}

Mask Mask::substitute(const std::function<std::optional<Expr>(uint32_t)>& replacement) const {
  Mask result;
  result.never_ = never_;
  for (const Expr& condition : conditions_) {
    result.require_nonnegative(condition.substitute(replacement));
  }
  return result;
}

size_t Mask::hash() const {
  uint64_t h = never_ ? 2 : 1;
  for (const Expr& condition : conditions_) h = hash_combine(h, condition.hash());
  return h;
}

bool Mask::operator==(const Mask& other) const {
  return never_ == other.never_ && conditions_ == other.conditions_;
}

}  // namespace rune::sym
