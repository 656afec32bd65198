// The key under which a jitted function finds the compiled call of a call's arguments, made without
// Python's help.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "bindings/bindings.h"

namespace rune::bindings {

// Calls with equal keys have the same tree of arguments, arrays and numbers of the same types at
// its leaves, and the same other values: equal ones of Python's immutable types, the same objects
// of all others, which `objects` lists.
struct CallKey {
  std::string text;
  std::vector<py::handle> leaves;    // in the order of trees.flatten
  std::vector<py::handle> objects;   // to be kept alive as long as the key
  std::span<const int64_t> dynamic;  // axes of the argument's arrays whose sizes it leaves out
};

// What of a function's signature decides how its arguments are keyed.
class Parameters {
 public:
  Parameters() = default;
  // By position: the name that a call may give (None if it may not), whether the argument is a
  // static value, and the axes of its arrays whose sizes keys leave out. `star` is the position of
  // *args, or their number.
  Parameters(const py::sequence& names, std::vector<bool> is_static,
             std::vector<std::vector<int64_t>> dynamic, size_t star);

  // False if the arguments cannot be keyed here: Python must take them apart.
  bool key_of(std::span<const py::handle> args, PyObject* const* values, PyObject* names,
              CallKey& key) const;

 private:
  size_t position_of(PyObject* name) const;
  bool append(py::handle argument, size_t position, CallKey& key) const;

  std::vector<py::object> names_;  // interned
  std::vector<bool> is_static_;
  std::vector<std::vector<int64_t>> dynamic_;
  size_t star_ = 0;
};

}  // namespace rune::bindings
