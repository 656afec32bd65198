// Guards on the Python state that a trace read. Each call compares the present state with them.
#pragma once

#include <vector>

#include "bindings/bindings.h"

namespace rune::bindings {

// A part of the state outside of a function, and its expected value.
struct Guard {
  // What the guard compares:
  //  - Attribute, Cell, Item (of a dict): the value is the expected object, or an equal number,
  //    text or tuple of these.
  //  - Items: all items, in order, of a list or deque (`expected` is a list) or of a dict
  //    (`expected` is a dict) are as for Item.
  //  - Keys: a dict has these keys in this order (`expected` is a tuple of texts), and no others.
  //  - Equal: holder == expected.
  //  - Content: the holder, an array, has the bytes of `expected`, a copy.
  enum class Kind : uint8_t { Attribute, Cell, Item, Items, Keys, Equal, Content };
  Kind kind = Kind::Item;
  py::object holder;
  py::object name;  // the name of an Attribute, or the key of an Item
  py::object expected;
  // The Attribute of a Python function that its object holds itself. Unlike `getattr`, a read of it
  // raises no audit event, which takes longer than the read.
  enum class OfFunction : uint8_t { None, Code, Defaults, KwDefaults };
  OfFunction of_function = OfFunction::None;

  // Whether the state is as expected. False if it cannot be read. Never raises.
  bool holds() const;
};

const char* name_of(Guard::Kind kind);

// Reads (kind, holder, name, expected) tuples.
std::vector<Guard> to_guards(const py::sequence& tuples);

}  // namespace rune::bindings
