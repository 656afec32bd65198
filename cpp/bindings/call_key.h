// The key of a call, by which a jitted function finds its compiled call.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "bindings/bindings.h"

namespace rune::bindings {

// Appends the key of one argument. For an array that is its dtype, shape and device, and whether it
// is in Fortran order. For a NumPy scalar it is the dtype, for a Python int or float the type.
// Sizes of an array's `dynamic` axes are left out, unless they are 0. Returns false and appends
// nothing for a static value and for an array that lacks a dynamic axis.
bool append_leaf_key(py::handle leaf, std::string& key, std::span<const int64_t> dynamic = {});

// The most numbers in one argument that a program takes, because each is an argument of the
// program.
constexpr int64_t kMostNumbers = 256;

// About how many of Python's numbers a list, tuple or dict holds, also in containers in it. Only
// the first item of each container is looked at. 1 for a number, 0 for other values.
int64_t count_numbers(PyObject* value);

// Calls with equal keys have the same structure of arguments. Their leaves are arrays and numbers
// of the same types, and equal other values. Two functions made by the same definition are equal if
// they use no variables of outer functions.
struct CallKey {
  std::string text;
  std::vector<py::object> values;   // values that the text does not describe, compared by ==
  std::vector<py::object> objects;  // kept alive, because the text contains their addresses

  bool operator==(const CallKey& other) const;
};

// The arguments of a call, and its key.
struct KeyedCall {
  CallKey key;
  std::vector<py::handle> leaves;    // in the order of trees.flatten
  std::vector<py::object> owned;     // keeps the leaves alive
  py::handle receiver;               // the object of a method; always a leaf
  std::vector<PyObject*> functions;  // functions that the key describes by their code
};

// The part of a function's signature that decides how its arguments are keyed.
class Parameters {
 public:
  Parameters() = default;
  // For each parameter, by position: its name if a call may use the name (otherwise None), whether
  // the argument is a static value, and the axes of its arrays whose sizes are not part of the key.
  // `star` is the position of *args, or the number of positional parameters; `star_star` is the
  // position of **kwargs. With `has_receiver`, the first parameter is the receiver of a method.
  // `describe` is trees.describe.
  Parameters(const py::sequence& names, std::vector<bool> is_static,
             std::vector<std::vector<int64_t>> dynamic, size_t star, size_t star_star,
             bool has_receiver, py::object describe);

  // False if an argument that is not static holds more than kMostNumbers. It takes long to make a
  // key of them. The parameters are those of key_of.
  bool may_have_key(std::span<PyObject* const> args, PyObject* const* values,
                    PyObject* names) const;

  // Makes the key of a call. `names` and `values` are the names and values of the arguments that
  // the call gives by name. Returns false if an argument is given twice. Raises Python's error for
  // a value that cannot be hashed.
  bool key_of(std::span<PyObject* const> args, PyObject* const* values, PyObject* names,
              KeyedCall& call) const;

 private:
  size_t position_of(PyObject* name) const;
  void append(py::handle argument, size_t position, KeyedCall& call) const;

  std::vector<py::object> names_;  // interned
  std::vector<bool> is_static_;
  std::vector<std::vector<int64_t>> dynamic_;
  size_t star_ = 0;
  size_t star_star_ = 0;
  bool has_receiver_ = false;
  py::object describe_;
};

}  // namespace rune::bindings
