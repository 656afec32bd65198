// What shortcuts of rules share (shortcuts.cpp).
#pragma once

#include <optional>
#include <span>

#include "bindings/bindings.h"
#include "bindings/context.h"
#include "bindings/tracer.h"
#include "graph/numpy/operands.h"

namespace rune::bindings {

using Arguments = std::span<PyObject* const>;

inline Arguments items_of(PyObject* tuple) {
  return {reinterpret_cast<PyTupleObject*>(tuple)->ob_item,
          static_cast<size_t>(PyTuple_GET_SIZE(tuple))};
}
// The items of a tuple, or something else itself.
inline Arguments items_or_one(PyObject* const& given) {
  return PyTuple_CheckExact(given) ? items_of(given) : Arguments(&given, 1);
}

// A callable that stands before a rule in Python.
struct ShortcutObject;
// The result (null with a Python exception set); nothing, or any C++ exception: the rule decides.
using Attempt = std::optional<PyObject*>(const ShortcutObject&, Arguments);

struct ShortcutObject {
  PyObject ob_base;  // as PyObject_HEAD has it
  vectorcallfunc vectorcall;
  PyObject* rule;
  Attempt* attempt;
  Attempt* attempt_out;  // of a call with out=..., which is the last argument then; or null
  PyObject* about;       // what the attempts need to know
  bool reflected;
};
// Of Tracer.__array_ufunc__(ufunc, method, *inputs, out=(out,))
Attempt attempt_ufunc_out;
// The name of the ufunc that the first arguments of __array_ufunc__ call; null for its methods.
PyObject* called_ufunc(const ShortcutObject& self, Arguments args);

// Tries `attempt`, then the rule.
py::object make_shortcut(const py::object& rule, const py::object& about, Attempt* attempt,
                         bool reflected = false, Attempt* attempt_out = nullptr);
// Lets a trace in segments look at what has been traced, unless that is not due (PyGraph). False
// with a Python exception set.
bool look(const ActiveTrace& active);

bool is_python_number(PyObject* x);
bool is_position(PyObject* x);  // whether it is an int of 64 bits
Py_ssize_t rank(const TracerObject& x);
// An array that is traced and belongs to this trace; null if it is something else.
TracerObject* traced_array(PyObject* object, const ActiveTrace& active);
bool is_numpy_number(PyObject* x);

// Operands of an operation, and what decides how it is computed.
struct Given {
  std::vector<py::object> held;
  graph::numpy::Operands values;
  bool is_traced = false;   // whether some values are known only when the program runs
  bool has_array = false;   // whether one is an array that is traced
  bool are_pythons = true;  // whether all may be Python's numbers
  bool has_weak_complex = false;
};
// None if some are unusual.
std::optional<Given> usual(const ActiveTrace& active, Arguments operands);

// The result of an operation in the innermost trace, or null with an exception set. NumPy lays it
// out in memory as its operands; `in_order`: in the order that NumPy calls "K".
PyObject* finish(const ActiveTrace& active, const graph::numpy::Operand& result, Arguments operands,
                 bool in_order = true);

// Whether what writes to arrays in place may write to this one.
bool is_written_to(const TracerObject& x);
// Writes a result to the array, if that has its type. Whether it has; throws if that fails.
bool write_result(const ActiveTrace& active, const TracerObject& x,
                  const graph::numpy::Operand& result);

void bind_function_shortcuts(py::module_& m);
void bind_index_shortcuts(py::module_& m);

}  // namespace rune::bindings
