// The key of a call: jitted functions find their compiled calls under it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "bindings/bindings.h"

namespace rune::bindings {

// Calls with equal keys have the same structure of arguments, arrays and numbers of the same types
// at its leaves, and the same other values.
struct CallKey {
  std::string text;
  std::vector<py::object> values;   // which the text does not describe: compared by ==
  std::vector<py::object> objects;  // whose addresses the text has: kept alive as long as the key

  bool operator==(const CallKey& other) const;
};

// The arguments of a call, and its key.
struct KeyedCall {
  CallKey key;
  std::vector<py::handle> leaves;  // in the order of trees.flatten
  std::vector<py::object> owned;   // keeps them alive
  py::handle receiver;             // the object of a method: a leaf, whatever it holds
};

// What of a function's signature decides how its arguments are keyed.
class Parameters {
 public:
  Parameters() = default;
  // By position: the name that a call may give (None if it may not), whether the argument is a
  // static value, and the axes of its arrays whose sizes keys leave out. `star` is the position of
  // *args, or the number of positional parameters, `star_star` that of **kwargs. The first
  // parameter may be the receiver of a method. `describe` is trees.describe.
  Parameters(const py::sequence& names, std::vector<bool> is_static,
             std::vector<std::vector<int64_t>> dynamic, size_t star, size_t star_star,
             bool has_receiver, py::object describe);

  // `values` are those of the arguments that the call names. Raises what Python raises for a value
  // that has no hash. False for an argument that is given twice.
  bool key_of(std::span<const py::handle> args, PyObject* const* values, PyObject* names,
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
