// Shapes, strides and symbolic sizes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "base/text.h"

namespace rune {

using Ints = std::vector<int64_t>;

template <class List, class Item>
bool contains(const List& list, const Item& item) {
  return std::find(std::begin(list), std::end(list), item) != std::end(list);
}

// A named integer that is bound when a program runs, within [min_val, max_val].
struct SymVar {
  std::string name;
  int64_t min_val = 0;
  int64_t max_val = 0;
  RUNE_FIELDS(SymVar, f("name", name), f("min", min_val), f("max", max_val))
};

// The size of a dimension: a constant, or a constant plus multiples of variables. Two dims are
// equal if their expressions are, so a constant never equals a symbolic size.
class Dim {
 public:
  struct Term {
    SymVar var;
    int64_t coefficient = 0;  // not 0
    bool operator==(const Term&) const = default;
  };

  Dim(int64_t constant = 0) : offset_(constant) {}  // NOLINT: integers are dims
  explicit Dim(const SymVar& var) : Dim(0, {{var, 1}}) {}
  // The terms may be in any order. Terms of the same variable are added up. A variable with a
  // single possible value becomes a constant.
  Dim(int64_t offset, std::vector<Term> terms);

  bool is_constant() const { return !terms_; }
  // The value of a constant. Throws InternalError for a symbolic size, which the caller must have
  // handled.
  int64_t constant() const;
  int64_t offset() const { return offset_; }
  // Sorted by name. A constant has none.
  const std::vector<Term>& terms() const;
  // The greatest and the least value, if the variables are independent. Strides and memory are
  // planned for the greatest value.
  int64_t bound() const;
  int64_t least() const;
  // The size for these values of the variables.
  int64_t evaluate(const std::function<int64_t(const SymVar&)>& value) const;
  bool depends_on(const std::string& variable) const;
  // The same with these variables replaced by their values.
  Dim with(const std::map<std::string, int64_t>& values) const;
  // `2*n+m-1`
  std::string text() const;

  bool operator==(const Dim& other) const;
  // Throw UserError(Value) where a number exceeds 64 bits.
  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, int64_t factor);
  Dim& operator+=(const Dim& other) { return *this = *this + other; }

 private:
  int64_t offset_ = 0;
  std::shared_ptr<const std::vector<Term>> terms_;  // null if there are none
};

// Whether a <= b for all values of the variables.
bool always_at_most(const Dim& a, const Dim& b);
inline std::ostream& operator<<(std::ostream& out, const Dim& dim) {
  return out << dim.text();
}

// Reports sizes that do not fit each other. Throws UserError(Value) if all are constants, otherwise
// UserError(Unsupported) with a hint, because the sizes may fit when a program runs.
[[noreturn]] void refuse_sizes(const std::vector<Dim>& dims, const std::string& message);

using Shape = std::vector<Dim>;  // none is ever negative; {} is 0-d

inline bool is_constant(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end(), [](const Dim& d) { return d.is_constant(); });
}
inline Shape to_shape(const Ints& sizes) {
  return Shape(sizes.begin(), sizes.end());
}
// The greatest value of each dim. Memory has room for these.
Ints bounds_of(const Shape& shape);
// The value of each dim. All must be constant (see Dim::constant).
Ints constants_of(const Shape& shape);
// An order for containers: by bounds, then by text.
struct ShapeOrder {
  bool operator()(const Shape& a, const Shape& b) const;
};

// The product of sizes. Throws UserError(Unsupported) naming `op` if both are symbolic.
Dim product(const char* op, const Dim& a, const Dim& b);
// Product of the sizes; throws UserError(Value) if it does not fit 63 bits.
int64_t num_elements(const Ints& shape);
// The product of the dims' bounds: memory has room for this many elements.
int64_t max_elements(const Shape& shape);
// Row-major strides in elements, of memory with room for the dims' bounds.
Ints contiguous_strides(const Shape& shape);
// `[2,n+1]`
std::string shape_text(const Shape& shape);
std::string shape_text(const Ints& shape);
// NumPy broadcasting. Throws UserError(Value) naming `op`, both shapes and the dimension that
// differs.
Shape broadcast_shapes(const char* op, const Shape& a, const Shape& b);

// One view of a linear buffer: element `idx` lies at offset + sum(idx * strides), and is 0 outside
// the mask's [low, high) of each axis.
struct View {
  Ints shape;
  Ints strides;  // elements
  int64_t offset = 0;
  std::optional<std::vector<std::pair<int64_t, int64_t>>> mask;
  RUNE_FIELDS(View, f("shape", shape), f("strides", strides), f("offset", offset), f("mask", mask))
};

// A composition of views. An index goes to views.back(). Its linear position there is read as a
// row-major position in the shape of the view before it, and so on. The linear position in
// views.front() addresses the buffer.
struct ShapeTracker {
  std::vector<View> views;
  RUNE_FIELDS(ShapeTracker, f("views", views))
  const Ints& shape() const { return views.back().shape; }
};

}  // namespace rune

// `n`, `2*n+m-1`: the names must have been declared to the lexer.
template <>
struct rune::text::Codec<rune::Dim> {
  static void print(std::string& out, const rune::Dim& dim) { out += dim.text(); }
  static rune::Dim parse(Lexer& lexer);
};
