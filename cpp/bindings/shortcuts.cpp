// Shortcuts for rules: the most frequent operations of traced functions are recorded without a
// Python frame. A shortcut is tried before its rule, which is in Python. It takes only the usual
// operands, and leaves all others and all errors to the rule. The rule defines the correct result.
#include <array>
#include <cstddef>
#include <vector>

#include "bindings/bindings.h"
#include "bindings/context.h"
#include "bindings/graph_arguments.h"
#include "bindings/shortcuts.h"
#include "bindings/tracer.h"
#include "bindings/value.h"
#include "graph/numpy/reductions.h"
#include "graph/numpy/ufuncs.h"

// This header must come after Python.h.
#include <structmember.h>

namespace rune::bindings {

using graph::numpy::Operand;
using graph::numpy::Operands;

namespace {

PyTypeObject* shortcut_type = nullptr;  // never freed

ShortcutObject* as_shortcut(PyObject* object) {
  return reinterpret_cast<ShortcutObject*>(object);
}

// Whether an error must be raised at once, because the rule would not raise it again: it ends the
// trace, or a segment has raised it.
bool is_final(const py::error_already_set& error) {
  if (!error.matches(PyExc_Exception)) return true;
  const ActiveTrace* active = active_trace();
  return active && active->is_segmented &&
         py::object(active->trace.attr("error")).is(error.value());
}

// Whether `out` is the only named argument.
bool is_out(PyObject* names) {
  return PyTuple_GET_SIZE(names) == 1 &&
         PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "out") == 0;
}

PyObject* call(PyObject* object, PyObject* const* args, size_t flags, PyObject* names) {
  const ShortcutObject& self = *as_shortcut(object);
  const auto n = static_cast<size_t>(PyVectorcall_NARGS(flags));
  const auto num_names = names ? static_cast<size_t>(PyTuple_GET_SIZE(names)) : 0;
  Attempt* const attempt = num_names == 0  ? self.attempt
                           : is_out(names) ? self.attempt_out
                                           : nullptr;
  if (attempt) {
    try {
      if (const auto result = attempt(self, {args, n + num_names})) return *result;
    } catch (py::error_already_set& error) {
      if (is_final(error)) {
        error.restore();
        return nullptr;
      }
    } catch (const std::exception&) {  // the rule raises the error
    }
  }
  return PyObject_Vectorcall(self.rule, args, flags, names);
}

// Calls the rule. If it raises in a trace in segments, `about` is called with the exception and
// returns the result.
PyObject* call_or_numpy(PyObject* object, PyObject* const* args, size_t flags, PyObject* names) {
  const ShortcutObject& self = *as_shortcut(object);
  PyObject* result = PyObject_Vectorcall(self.rule, args, flags, names);
  const ActiveTrace* active = active_trace();
  if (!active || !active->is_segmented) return result;
  const py::object trace = active->trace;
  if (!result) {
    if (!PyErr_ExceptionMatches(PyExc_Exception)) return nullptr;
    try {
      py::error_already_set error;
      if (error.trace()) PyException_SetTraceback(error.value().ptr(), error.trace().ptr());
      const auto n = static_cast<size_t>(PyVectorcall_NARGS(flags));
      py::tuple positional(n);
      for (size_t i = 0; i < n; ++i) positional[i] = py::handle(args[i]);
      py::dict named;
      for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); ++i)
        named[PyTuple_GET_ITEM(names, i)] = py::handle(args[n + i]);
      result = py::handle(self.about)(trace, error.value(), positional, named).release().ptr();
    } catch (...) {
      raise_current_exception();
      return nullptr;
    }
  }
  if (look(*active)) return result;
  Py_DECREF(result);
  return nullptr;
}

// A call of a stand-in for a function of NumPy. Calls the function, which is the stand-in's
// attribute `_real`. If an argument is a list or tuple that holds traced arrays, calls the rule.
PyObject* call_real(PyObject* object, PyObject* const* args, size_t flags, PyObject* names) {
  const auto n = static_cast<size_t>(PyVectorcall_NARGS(flags));
  const size_t all = n + (names ? static_cast<size_t>(PyTuple_GET_SIZE(names)) : 0);
  for (size_t i = 1; i < all; ++i) {
    if (!PyList_CheckExact(args[i]) && !PyTuple_CheckExact(args[i])) continue;
    if (py::reinterpret_steal<py::object>(contains_tracer(nullptr, args[i])).ptr() == Py_True)
      return PyObject_Vectorcall(as_shortcut(object)->rule, args, flags, names);
  }
  static PyObject* const name = PyUnicode_InternFromString("_real");
  const auto real = py::reinterpret_steal<py::object>(PyObject_GetAttr(args[0], name));
  return real ? PyObject_Vectorcall(real.ptr(), args + 1, n - 1, names) : nullptr;
}

// Calls `about`, the method, for an array. Calls the rule, which allows or refuses the method, for
// a number.
PyObject* call_method(PyObject* object, PyObject* const* args, size_t flags, PyObject* names) {
  const ShortcutObject& self = *as_shortcut(object);
  const TracerObject* x = PyVectorcall_NARGS(flags) > 0 ? as_tracer(args[0]) : nullptr;
  const bool is_array = x && !storage_of(*x).is(StorageField::Scalar);
  return PyObject_Vectorcall(is_array ? self.about : self.rule, args, flags, names);
}

PyObject* bind(PyObject* self, PyObject* object, PyObject*) {
  return object ? PyMethod_New(self, object) : py::handle(self).inc_ref().ptr();
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(as_shortcut(self)->rule);
  Py_VISIT(as_shortcut(self)->about);
  return 0;
}

int clear(PyObject*) {
  return 0;  // lives as long as the class whose method it is
}

void free_shortcut(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  Py_CLEAR(as_shortcut(self)->rule);
  Py_CLEAR(as_shortcut(self)->about);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* name_of(PyObject* self, void*) {
  return PyObject_GetAttrString(as_shortcut(self)->rule, "__name__");
}

PyTypeObject* make_shortcut_type() {
  static PyMemberDef members[] = {
      {"__vectorcalloffset__", T_PYSSIZET, offsetof(ShortcutObject, vectorcall), READONLY, nullptr},
      {"__wrapped__", T_OBJECT_EX, offsetof(ShortcutObject, rule), READONLY, nullptr},
      {nullptr, 0, 0, 0, nullptr}};
  static PyGetSetDef properties[] = {{"__name__", &name_of, nullptr, nullptr, nullptr},
                                     {nullptr, nullptr, nullptr, nullptr, nullptr}};
  PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(&PyVectorcall_Call)},
                         {Py_tp_descr_get, reinterpret_cast<void*>(&bind)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(&free_shortcut)},
                         {Py_tp_traverse, reinterpret_cast<void*>(&traverse)},
                         {Py_tp_clear, reinterpret_cast<void*>(&clear)},
                         {Py_tp_members, members},
                         {Py_tp_getset, properties},
                         {0, nullptr}};
  PyType_Spec spec = {"rune_jit._core.Shortcut", sizeof(ShortcutObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                          Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                      slots};
  auto* type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (!type) throw py::error_already_set();
  return type;
}

py::object make(vectorcallfunc function, const py::object& rule, const py::object& about,
                Attempt* attempt = nullptr, bool reflected = false,
                Attempt* attempt_out = nullptr) {
  PyObject* self = shortcut_type->tp_alloc(shortcut_type, 0);
  if (!self) throw py::error_already_set();
  ShortcutObject& made = *as_shortcut(self);
  made.vectorcall = function;
  made.rule = py::handle(rule).inc_ref().ptr();
  made.attempt = attempt;
  made.attempt_out = attempt_out;
  made.about = py::handle(about).inc_ref().ptr();
  made.reflected = reflected;
  return py::reinterpret_steal<py::object>(self);
}

}  // namespace

py::object make_shortcut(const py::object& rule, const py::object& about, Attempt* attempt,
                         bool reflected, Attempt* attempt_out) {
  return make(&call, rule, about, attempt, reflected, attempt_out);
}

bool look(const ActiveTrace& active) {
  if (!active.is_segmented) return true;
  const PyGraph& graph = *active.graph;
  if (graph.checks.empty() && graph.size() <= graph.quiet_until) return true;
  static PyObject* const name = PyUnicode_InternFromString("after_operation");
  const py::object trace = active.trace;
  return static_cast<bool>(
      py::reinterpret_steal<py::object>(PyObject_CallMethodNoArgs(trace.ptr(), name)));
}

bool is_python_number(PyObject* x) {
  return PyFloat_CheckExact(x) || PyLong_CheckExact(x) || PyBool_Check(x) ||
         PyComplex_CheckExact(x);
}

bool is_position(PyObject* x) {
  if (!PyLong_CheckExact(x)) return false;
  int overflow = 0;
  PyLong_AsLongLongAndOverflow(x, &overflow);
  return overflow == 0;
}

Py_ssize_t rank(const TracerObject& x) {
  return PyTuple_GET_SIZE(x[TracerField::Shape]);
}

TracerObject* traced_array(PyObject* object, const ActiveTrace& active) {
  TracerObject* x = as_tracer(object);
  if (!x || (*x)[TracerField::Trace] != active.trace.ptr()) return nullptr;
  const StorageObject& storage = storage_of(*x);
  const bool is_usual = !storage.has(StorageField::Array) && !storage.is(StorageField::Scalar);
  return is_usual ? x : nullptr;
}

bool is_numpy_number(PyObject* x) {
  static PyObject* const generic =
      py::object(py::module_::import("numpy").attr("generic")).release().ptr();
  return PyObject_TypeCheck(x, reinterpret_cast<PyTypeObject*>(generic));
}

namespace {

// The result of Trace.operand for a usual operand. Null for others.
py::object value_of(PyObject* trace, PyGraph& graph, PyObject* x) {
  if (const TracerObject* tracer = as_tracer(x))
    return py::reinterpret_borrow<py::object>(known_value(*tracer, trace));
  if (is_python_number(x)) return py::reinterpret_borrow<py::object>(x);
  if (is_numpy_number(x)) return constant(graph, py::reinterpret_borrow<py::object>(x));
  return {};
}

// Whether a step of a view keeps the order of the axes.
bool selects_only(PyObject* step) {
  const bool is_element =
      PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(step, 0), "element") == 0;
  return is_element || items_of_step(step);
}

}  // namespace

bool is_c_ordered(const TracerObject& x) {
  using enum StorageField;
  const StorageObject& storage = storage_of(x);
  if (storage.has(Leaf) ? !storage.is(InCOrder)
                        : PyTuple_GET_SIZE(storage[OrderFrom]) > 0 || !storage.is(OrderKnown) ||
                              storage.has(LaidOutBy))
    return false;
  for (PyObject* step : items_of(x[TracerField::Steps]))
    if (!selects_only(step)) return false;
  PyObject* const known = storage[storage.has(Array) ? Array : Captured];
  return known == Py_None || (is_ndarray(known, false) && header_of(known).contiguous);
}

namespace {

// The operands that decide the order of a result in memory. None if all are in C order, because
// segments store every value that is referred to.
py::tuple order_of(Arguments operands) {
  std::vector<PyObject*> arrays;
  bool in_c_order = true;
  for (PyObject* x : operands) {
    const TracerObject* tracer = as_tracer(x);
    if (!tracer || rank(*tracer) < 2) continue;
    arrays.push_back(x);
    in_c_order = in_c_order && is_c_ordered(*tracer);
  }
  py::tuple order(in_c_order ? 0 : arrays.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = py::handle(arrays[i]);
  return order;
}

PyObject* order_of(PyObject*, PyObject* operands) {
  try {
    const auto all =
        py::reinterpret_steal<py::object>(PySequence_Fast(operands, "order_of: takes a sequence"));
    if (!all) return nullptr;
    return order_of({PySequence_Fast_ITEMS(all.ptr()),
                     static_cast<size_t>(PySequence_Fast_GET_SIZE(all.ptr()))})
        .release()
        .ptr();
  } catch (...) {
    raise_current_exception();
  }
  return nullptr;
}

}  // namespace

PyObject* finish(const ActiveTrace& active, const Operand& result, Arguments operands,
                 bool in_order) {
  const PyValue value = to_value(*active.graph, result);
  py::object made = make_tracer(active.trace.ptr(), value.ptr(), active.line.ptr());
  const TracerObject& tracer = *as_tracer(made.ptr());
  if (rank(tracer) > 1) {
    storage_of(tracer).set(StorageField::OrderFrom, order_of(operands).ptr());
    storage_of(tracer).set(StorageField::InOrderOfOperands, in_order ? Py_True : Py_False);
  }
  if (!look(active)) return nullptr;
  return made.release().ptr();
}

std::optional<Given> usual(const ActiveTrace& active, Arguments operands) {
  Given given;
  for (PyObject* x : operands) {
    py::object value = value_of(active.trace.ptr(), *active.graph, x);
    if (!value) return {};
    const Operand operand = to_operand(value);
    if (const TracerObject* tracer = as_tracer(x)) {
      given.is_traced |= !storage_of(*tracer).has(StorageField::Array);
      given.has_array |= rank(*tracer) > 0;
    }
    given.are_pythons &= operand.weak || graph::numpy::unsure_kind(*active.graph, operand);
    given.has_weak_complex |= operand.weak == Kind::Complex;
    given.values.push_back(operand);
    given.held.push_back(std::move(value));
  }
  if (!given.is_traced) return {};
  return given;
}

namespace {

// products.generalized("matmul", a, b) for at most two dimensions, where results are in C order.
std::optional<PyObject*> product(const ActiveTrace& active, Arguments operands) {
  if (operands.size() != 2) return {};
  for (PyObject* x : operands)
    if (const TracerObject* tracer = as_tracer(x); !tracer || rank(*tracer) > 2) return {};
  const auto given = usual(active, operands);
  if (!given) return {};
  note_line();
  const Operand result = graph::numpy::matmul(*active.graph, given->values[0], given->values[1]);
  return finish(active, result, {}, false);
}

// A Python operator: protocol.operator.
std::optional<PyObject*> attempt_operator(const ShortcutObject& self, Arguments args) {
  const ActiveTrace* active = active_trace();
  if (!active || args.empty() || args.size() > 2) return {};
  const std::array<PyObject*, 2> both = {args.back(), args.front()};
  const Arguments operands = self.reflected ? Arguments(both) : args;
  const auto ufunc = py::handle(self.about).cast<std::string_view>();
  if (ufunc == "matmul") return product(*active, operands);
  const auto given = usual(*active, operands);
  if (!given) return {};
  const bool divides = ufunc == "divide" || ufunc == "floor_divide" || ufunc == "remainder";
  const TracerObject* first = as_tracer(operands.front());
  if (ufunc == "power" && !(first && rank(*first) > 0)) return {};
  if (!given->has_array && (given->has_weak_complex || (given->are_pythons && divides))) return {};
  note_line();
  return finish(*active, python_operator(*active->graph, ufunc, given->values), operands);
}

// Tracer.__array_ufunc__(ufunc, method, *inputs)
std::optional<PyObject*> attempt_ufunc(const ShortcutObject& self, Arguments args) {
  const ActiveTrace* active = active_trace();
  PyObject* name = active && args.size() > 3 ? called_ufunc(self, args) : nullptr;
  if (!name) return {};
  const Arguments operands = args.subspan(3);
  const auto ufunc = py::handle(name).cast<std::string_view>();
  if (ufunc == "matmul") return product(*active, operands);
  const auto given = usual(*active, operands);
  if (!given) return {};
  note_line();
  return finish(*active, graph::numpy::ufunc(*active->graph, ufunc, given->values)[0], operands);
}

// Tracer._value_in(trace)
std::optional<PyObject*> attempt_value(const ShortcutObject&, Arguments args) {
  const TracerObject* tracer = args.size() == 2 ? as_tracer(args[0]) : nullptr;
  PyObject* value = tracer ? known_value(*tracer, args[1]) : nullptr;
  if (!value) return {};
  return py::handle(value).inc_ref().ptr();
}

// Trace.operand(x)
std::optional<PyObject*> attempt_operand(const ShortcutObject&, Arguments args) {
  if (args.size() != 2) return {};
  if (const TracerObject* tracer = as_tracer(args[1])) {
    PyObject* value = known_value(*tracer, args[0]);
    if (!value) return {};
    return py::handle(value).inc_ref().ptr();
  }
  if (!is_python_number(args[1])) return {};
  return py::handle(args[1]).inc_ref().ptr();
}

}  // namespace

void bind_shortcuts(py::module_& m) {
  shortcut_type = make_shortcut_type();
  m.def(
      "shorten_operator",
      [](const py::object& rule, const py::str& ufunc, bool reflected) {
        return make_shortcut(rule, ufunc, &attempt_operator, reflected);
      },
      py::arg("rule"), py::arg("ufunc"), py::arg("reflected"),
      "A method for an operator of traced arrays that computes most operands without the rule.");
  m.def(
      "shorten_ufuncs",
      [](const py::object& rule, const py::dict& names) {
        return make_shortcut(rule, names, &attempt_ufunc, false, &attempt_ufunc_out);
      },
      py::arg("rule"), py::arg("names"),
      "A Tracer.__array_ufunc__ that computes ufuncs of these names without the rule.");
  m.def(
      "shorten_value_in",
      [](const py::object& rule) { return make_shortcut(rule, py::none(), &attempt_value); },
      py::arg("rule"), "Tracer._value_in");
  m.def(
      "shorten_operand",
      [](const py::object& rule) { return make_shortcut(rule, py::none(), &attempt_operand); },
      py::arg("rule"), "Trace.operand");
  m.def(
      "or_numpy",
      [](const py::object& rule, const py::object& otherwise) {
        return make(&call_or_numpy, rule, otherwise);
      },
      py::arg("rule"), py::arg("otherwise"),
      "A callable that calls the rule. In a trace in segments, it calls otherwise(trace, error, "
      "args, kwargs) if the rule raises an Exception, and then Trace.after_operation.");
  m.def(
      "shorten_stand_in", [](const py::object& rule) { return make(&call_real, rule, py::none()); },
      py::arg("rule"),
      "A method that calls the attribute _real of its object instead, unless an argument is a list "
      "or tuple that holds traced arrays.");
  m.def(
      "shorten_method",
      [](const py::object& rule, const py::object& method) {
        return make(&call_method, rule, method);
      },
      py::arg("rule"), py::arg("method"),
      "A callable that calls the method for traced arrays, and the rule for traced numbers.");
  bind_function_shortcuts(m);
  bind_index_shortcuts(m);
  m.attr("Shortcut") =
      py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(shortcut_type));
  static PyMethodDef functions[] = {
      {"contains_traced", &contains_traced, METH_O,
       "Whether x is, or holds in nested lists, tuples, dicts and slices, a tracer or size whose "
       "value is not known while tracing."},
      {"contains_tracer", &contains_tracer, METH_O,
       "Whether x is a tracer, or holds one in nested lists and tuples."},
      {"tracers_in", &tracers_in, METH_O, "The tracers in nested lists, tuples, dicts and slices."},
      {"order_of", &order_of, METH_O,
       "The operands, in a list or tuple, that decide the order of a result in memory: none if all "
       "lie in C order."},
      {nullptr, nullptr, 0, nullptr}};
  if (PyModule_AddFunctions(m.ptr(), functions) != 0) throw py::error_already_set();
}

}  // namespace rune::bindings
