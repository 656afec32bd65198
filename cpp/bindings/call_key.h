// The key of a call, by which a jitted function finds its compiled call.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "bindings/bindings.h"

namespace rune::bindings {

// Appends the key of one argument: dtype, shape, device of an array and whether it is turned, dtype
// of a NumPy scalar, the type of a Python int or float. The sizes of an array's `dynamic` axes are
// left out, unless one is 0. Returns false and appends nothing for a static value and for an array
// that lacks a dynamic axis.
bool append_leaf_key(py::handle leaf, std::string& key, std::span<const int64_t> dynamic = {});

// Calls with equal keys have the same structure of arguments, arrays and numbers of the same types
// at the leaves, and equal other values. Functions that one definition has made, without variables
// of outer functions, are equal.
struct CallKey {
  std::string text;
  std::vector<py::object> values;   // not described by the text: compared by ==
  std::vector<py::object> objects;  // objects whose addresses the text has, kept alive by the key

  bool operator==(const CallKey& other) const;
};

// The arguments of a call, and its key.
struct KeyedCall {
  CallKey key;
  std::vector<py::handle> leaves;    // in the order of trees.flatten
  std::vector<py::object> owned;     // keeps the leaves alive
  py::handle receiver;               // the object of a method; always a leaf
  std::vector<PyObject*> functions;  // those that the key describes by their code
};

// The part of a function's signature that decides how its arguments are keyed.
class Parameters {
 public:
  Parameters() = default;
  // For each parameter, by position: its name if a call may use it (otherwise None), whether the
  // argument is a static value, and the axes of its arrays whose sizes are not part of the key.
  // `star` is the position of *args, or the number of positional parameters; `star_star` is the
  // position of **kwargs. With `has_receiver`, the first parameter is the receiver of a method.
  // `describe` is trees.describe.
  Parameters(const py::sequence& names, std::vector<bool> is_static,
             std::vector<std::vector<int64_t>> dynamic, size_t star, size_t star_star,
             bool has_receiver, py::object describe);

  // False if an argument, which is no static value, holds so many numbers that no program takes it.
  // (To make a key of them takes long.) The parameters are those of key_of.
  bool may_have_key(std::span<PyObject* const> args, PyObject* const* values,
                    PyObject* names) const;

  // Makes the key of a call. `names` are the names of the arguments that the call gives by name,
  // `values` their values. Returns false if an argument is given twice. Raises Python's error for a
  // value without a hash.
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
