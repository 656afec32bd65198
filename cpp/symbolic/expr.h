// Index expressions: integers built from loop variables by sums, constant multiples, and floor
// division and remainder by positive constants. They are always in canonical form: equal
// expressions compare equal, and simplifications that bounds can prove have been made.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace rune::sym {

// Inclusive bounds.
struct Bounds {
  int64_t low = 0;
  int64_t high = 0;
  bool operator==(const Bounds&) const = default;
};

struct Atom;

// constant + sum of coefficient * atom. Terms are sorted by atom; no coefficient is 0, and no atom
// occurs twice.
class Expr {
 public:
  struct Term {
    int64_t coefficient;
    std::shared_ptr<const Atom> atom;
  };

  Expr() = default;
  Expr(int64_t constant) : constant_(constant) {}  // NOLINT: integers are expressions
  // All variables with the same id must have the same bounds. A variable with a single possible
  // value becomes a constant.
  static Expr variable(uint32_t id, Bounds bounds);
  // The sum of a constant and terms in any order. Atoms may repeat, and coefficients may be 0.
  static Expr from_terms(int64_t constant, std::vector<Term> terms);

  int64_t constant() const { return constant_; }
  const std::vector<Term>& terms() const { return terms_ ? *terms_ : no_terms(); }
  bool is_constant() const { return !terms_; }
  // Interval bounds. INT64_MIN or INT64_MAX stands for an unknown bound.
  Bounds bounds() const;

  // The coefficient c if this is c * variable + (an expression without the variable); nothing if
  // the variable occurs inside a division or remainder.
  std::optional<int64_t> coefficient_of(uint32_t variable) const;
  bool depends_on(uint32_t variable) const;
  // The ids of all variables, sorted, each once.
  std::vector<uint32_t> variables() const;
  // The variable's id if this is a single variable (coefficient 1, constant 0).
  std::optional<uint32_t> as_variable() const;
  // The greatest d >= 1 that provably divides every value; 0 for the constant 0.
  int64_t known_divisor() const;

  // Replaces variables, except those for which the function returns nothing.
  Expr substitute(const std::function<std::optional<Expr>(uint32_t)>& replacement) const;

  size_t hash() const;
  bool operator==(const Expr& other) const;

  friend Expr operator+(const Expr& a, const Expr& b);
  friend Expr operator-(const Expr& a, const Expr& b);
  friend Expr operator*(const Expr& a, int64_t factor);
  // The quotient rounded down, and the remainder in [0, divisor). The divisor is positive.
  friend Expr floordiv(const Expr& a, int64_t divisor);
  friend Expr mod(const Expr& a, int64_t divisor);

 private:
  static const std::vector<Term>& no_terms();

  int64_t constant_ = 0;
  std::shared_ptr<const std::vector<Term>> terms_;  // null if there are none
};

// The variable part of a term: a variable, `inner // divisor` or `inner % divisor`.
struct Atom {
  enum class Kind : uint8_t { Variable, Div, Mod } kind = Kind::Variable;
  uint32_t variable = 0;
  Expr inner;
  int64_t divisor = 1;
  Bounds bounds;
  size_t hash = 0;
};

// A conjunction of conditions `expr >= 0`. Conditions that follow from bounds are left out.
class Mask {
 public:
  Mask() = default;  // always true
  static Mask never();

  // Adds a condition.
  void require_nonnegative(const Expr& expr);
  // low <= expr < high.
  void require_between(const Expr& expr, int64_t low, int64_t high);
  void require(const Mask& other);

  bool is_true() const { return !never_ && conditions_.empty(); }
  bool is_false() const { return never_; }
  const std::vector<Expr>& conditions() const { return conditions_; }
  Mask substitute(const std::function<std::optional<Expr>(uint32_t)>& replacement) const;
  size_t hash() const;
  bool operator==(const Mask& other) const;

 private:
  bool never_ = false;
  std::vector<Expr> conditions_;  // sorted
};

// Convert an index tuple in a shape to its row-major position, and back. The index must lie within
// the shape and the position within its size: flattening ignores the coordinate of an axis of size
// 1, and unflattening takes no remainder for the outermost axis. In an empty shape all positions
// and coordinates are 0.
Expr flatten_index(const std::vector<Expr>& index, const std::vector<int64_t>& shape);
std::vector<Expr> unflatten_index(const Expr& position, const std::vector<int64_t>& shape);

}  // namespace rune::sym
