// Declarations that the shortcuts of rules share (see shortcuts.cpp).
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
// The items of a tuple. Any other object gives itself as the only item.
inline Arguments items_or_one(PyObject* const& given) {
  return PyTuple_CheckExact(given) ? items_of(given) : Arguments(&given, 1);
}

// A callable that is tried before a rule in Python.
struct ShortcutObject;
// An attempt to compute what the rule would return. Its result is an object, or null with a Python
// exception set. If it returns nothing or throws a C++ exception, the rule is called.
using Attempt = std::optional<PyObject*>(const ShortcutObject&, Arguments);

struct ShortcutObject {
  PyObject ob_base;  // what PyObject_HEAD declares
  vectorcallfunc vectorcall;
  PyObject* rule;
  Attempt* attempt;
  Attempt* attempt_out;  // for a call with out=..., which is then the last argument; may be null
  PyObject* about;       // data for the attempts
  bool reflected;
};
// The attempt for Tracer.__array_ufunc__(ufunc, method, *inputs, out=(out,)).
Attempt attempt_ufunc_out;
// The name of the ufunc that a call of __array_ufunc__ stands for. Null if it stands for a call of
// one of the ufunc's methods.
PyObject* called_ufunc(const ShortcutObject& self, Arguments args);

// Makes a callable that tries `attempt` and then the rule.
py::object make_shortcut(const py::object& rule, const py::object& about, Attempt* attempt,
                         bool reflected = false, Attempt* attempt_out = nullptr);
// Lets a trace in segments look at what has been traced, if it is due (PyGraph::quiet_until).
// Returns false if that has set a Python exception.
bool look(const ActiveTrace& active);

// Whether x is or holds something traced, and the list of tracers in x (containers.cpp). Both look
// through nested lists, tuples and dicts, the first one also through slices.
PyObject* contains_traced(PyObject* module, PyObject* x);
PyObject* contains_tracer(PyObject* module, PyObject* x);
PyObject* tracers_in(PyObject* module, PyObject* x);

bool is_python_number(PyObject* x);
bool is_position(PyObject* x);  // whether it is an int of 64 bits
Py_ssize_t rank(const TracerObject& x);
// The object as a traced array of this trace, or null.
TracerObject* traced_array(PyObject* object, const ActiveTrace& active);
bool is_numpy_number(PyObject* x);

// The operands of an operation, and facts about them that decide how it is computed.
struct Given {
  std::vector<py::object> held;
  graph::numpy::Operands values;
  bool is_traced = false;   // whether some values are known only when the program runs
  bool has_array = false;   // whether one is a traced array
  bool are_pythons = true;  // whether all may be Python's numbers
  bool has_weak_complex = false;
};
// Reads the operands. Returns nothing if some are unusual.
std::optional<Given> usual(const ActiveTrace& active, Arguments operands);

// Whether the result of an elementwise operation of NumPy on this array is certainly in C order.
bool is_c_ordered(const TracerObject& x);

// Makes the Python object for an operation's result in the innermost trace. Returns null with an
// exception set if that fails. If `in_order` is set, NumPy gives the result the memory order of the
// operands (order "K").
PyObject* finish(const ActiveTrace& active, const graph::numpy::Operand& result, Arguments operands,
                 bool in_order = true);

// Whether an operation in place may write to this array.
bool is_written_to(const TracerObject& x);
// Writes a result to the array, if it has the result's type. Returns whether it has. Throws if the
// write fails.
bool write_result(const ActiveTrace& active, const TracerObject& x,
                  const graph::numpy::Operand& result);

void bind_function_shortcuts(py::module_& m);
void bind_index_shortcuts(py::module_& m);

}  // namespace rune::bindings
