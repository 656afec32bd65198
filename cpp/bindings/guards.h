// Guards: what the Python state that a trace read looked like, compared at each call.
#pragma once

#include <vector>

#include "bindings/bindings.h"

namespace rune::bindings {

// One part of the state outside of a function.
struct Guard {
  // Attribute, Cell, Item of a dict: the value is the same object, or an equal number, text or
  // tuple of these. Items: the same holds of everything in a list, a deque (the value is a list) or
  // a dict (the value is one), in its order. Equal: the holder is == the value. Content: the
  // holder, an array, has the bytes of the value, a copy.
  enum class Kind : uint8_t { Attribute, Cell, Item, Items, Equal, Content };
  Kind kind = Kind::Item;
  py::object holder;
  py::object name;  // of Attribute and Item: the name or key
  py::object expected;

  // Never raises: a state that cannot be read does not hold.
  bool holds() const;
};

// Reads (kind, holder, name, expected) tuples.
std::vector<Guard> to_guards(const py::sequence& tuples);

}  // namespace rune::bindings
