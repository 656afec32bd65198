// Integer arithmetic and the order of atoms, for the files of this folder.
#pragma once

#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "symbolic/expr.h"

namespace rune::sym::detail {

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

inline int64_t floor_quotient(int64_t a, int64_t d) {
  return a / d - (a % d < 0 ? 1 : 0);
}
inline int64_t floor_remainder(int64_t a, int64_t d) {
  return a % d + (a % d < 0 ? d : 0);
}

inline std::optional<int64_t> try_add(int64_t a, int64_t b) {
  int64_t result;
  if (__builtin_add_overflow(a, b, &result)) return std::nullopt;
  return result;
}

inline std::optional<int64_t> try_multiply(int64_t a, int64_t b) {
  int64_t result;
  if (__builtin_mul_overflow(a, b, &result)) return std::nullopt;
  return result;
}

inline int64_t checked_add(int64_t a, int64_t b) {
  const auto result = try_add(a, b);
  RUNE_CHECK(result, "index expression: cannot add ", a, " to ", b, " (exceeds 64 bits)");
  return *result;
}

inline int64_t checked_multiply(int64_t a, int64_t b) {
  const auto result = try_multiply(a, b);
  RUNE_CHECK(result, "index expression: cannot multiply ", a, " by ", b, " (exceeds 64 bits)");
  return *result;
}

// The greatest common divisor of the magnitudes. The magnitude of INT64_MIN is no int64_t, so its
// divisor 2^62 takes its place. That suffices for the callers.
inline int64_t gcd(int64_t a, int64_t b) {
  if (a == kMin) a = int64_t{1} << 62;
  if (b == kMin) b = int64_t{1} << 62;
  return std::gcd(a, b);
}

// Accumulates the bounds of a sum. A bound that is unknown or does not fit 64 bits stays unknown.
class BoundsSum {
 public:
  explicit BoundsSum(int64_t constant) : low_(constant), high_(constant) {}

  void add(int64_t coefficient, Bounds bounds) {
    if (coefficient < 0) std::swap(bounds.low, bounds.high);
    accumulate(low_, low_known_, coefficient, bounds.low);
    accumulate(high_, high_known_, coefficient, bounds.high);
  }

  Bounds bounds() const {
    // A known bound that exceeds 64 bits makes both unknown, because the nearest 64-bit number
    // would not be a bound.
    const bool fits = (!low_known_ || low_ < kMax) && (!high_known_ || high_ > kMin);
    return {low_known_ && fits && low_ > kMin ? static_cast<int64_t>(low_) : kMin,
            high_known_ && fits && high_ < kMax ? static_cast<int64_t>(high_) : kMax};
  }

 private:
  static void accumulate(__int128& sum, bool& known, int64_t coefficient, int64_t bound) {
    constexpr __int128 kLimit = static_cast<__int128>(1) << 100;
    if (bound == kMin || bound == kMax) known = false;
    if (!known) return;
    sum += static_cast<__int128>(coefficient) * bound;
    if (sum > kLimit || sum < -kLimit) known = false;
  }

  __int128 low_, high_;
  bool low_known_ = true, high_known_ = true;
};

// The k such that all values lie in the block [k*d, (k+1)*d), if there is one.
inline std::optional<int64_t> single_block(Bounds bounds, int64_t d) {
  if (bounds.low == kMin || bounds.high == kMax) return std::nullopt;
  const int64_t block = floor_quotient(bounds.low, d);
  if (block != floor_quotient(bounds.high, d)) return std::nullopt;
  return block;
}

// Total orders by structure: negative, 0 or positive.
int compare(const Atom& a, const Atom& b);
int compare(const Expr& a, const Expr& b);
// The same order without the constants.
int compare_terms(const Expr& a, const Expr& b);

Expr of_atom(std::shared_ptr<const Atom> atom);
// Makes a quotient or remainder without simplifying it.
Expr make_division(Atom::Kind kind, Expr inner, int64_t divisor);

// `whole` and all its factors > 1 that it has in common with some of the coefficients, greatest
// first. If whole = 0: the factors > 1 that coefficients have in common.
std::vector<int64_t> common_factors(const Expr& expr, int64_t whole);

// A form expr = g * multiple + rest in which every value of rest is in [0, g).
struct BlockSplit {
  Expr multiple, rest;
};
std::optional<BlockSplit> split_by_block(const Expr& expr, int64_t g);

// Joins quotients and remainders of the same value in a sum, such as c*(x//c) + x%c. The terms are
// sorted and distinct. Returns nothing if none can be joined.
std::optional<Expr> recombine(int64_t constant, const std::vector<Expr::Term>& terms);

}  // namespace rune::sym::detail
