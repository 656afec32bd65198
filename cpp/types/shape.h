// Shapes, strides and symbolic sizes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/text.h"

namespace rune {

using Ints = std::vector<int64_t>;
using Shape = Ints;  // non-negative sizes; {} is 0-d

inline bool contains(const Ints& list, int64_t item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

// A named size that is bound when a program runs, within [min_val, max_val].
struct SymVar {
  std::string name;
  int64_t min_val = 0;
  int64_t max_val = 0;
  bool operator==(const SymVar&) const = default;
  template <class F>
  void fields(F&& f) {
    f("name", name);
    f("min", min_val);
    f("max", max_val);
  }
};

// Product of the sizes; throws UserError(Value) if it does not fit 63 bits.
int64_t num_elements(const Shape& shape);
// Row-major strides in elements.
Ints contiguous_strides(const Shape& shape);
// `[2,3]`
std::string shape_text(const Shape& shape);
// NumPy broadcasting. Throws UserError(Value) naming `op`, both shapes and the dimension that
// differs.
Shape broadcast_shapes(const char* op, const Shape& a, const Shape& b);
// Maps a NumPy axis (may be negative) to [0, rank). Throws UserError(Index) naming `op`.
int64_t normalize_axis(const char* op, int64_t axis, int64_t rank);

// One view of a linear buffer: element `idx` lies at offset + sum(idx * strides), and is 0 outside
// the mask's [low, high) of each axis.
struct View {
  Shape shape;
  Ints strides;  // elements
  int64_t offset = 0;
  std::optional<std::vector<std::pair<int64_t, int64_t>>> mask;
  bool operator==(const View&) const = default;
  template <class F>
  void fields(F&& f) {
    f("shape", shape);
    f("strides", strides);
    f("offset", offset);
    f("mask", mask);
  }
};

// A composition of views: views.back() is indexed first, and its linear position, read as a
// row-major position in the shape of the view before it, goes on from there to views.front(), whose
// linear position addresses the buffer.
struct ShapeTracker {
  std::vector<View> views;
  bool operator==(const ShapeTracker&) const = default;
  const Shape& shape() const { return views.back().shape; }
  template <class F>
  void fields(F&& f) {
    f("views", views);
  }
};

}  // namespace rune
