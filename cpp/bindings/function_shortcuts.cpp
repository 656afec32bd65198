// Shortcuts for the rules of NumPy's functions (reductions, where, transpose, reshape), of methods
// that reduce, of astype, and of ufuncs with out=.
#include <algorithm>
#include <string_view>

#include "bindings/bindings.h"
#include "bindings/context.h"
#include "bindings/shortcuts.h"
#include "bindings/tracer.h"
#include "bindings/value.h"
#include "graph/numpy/movement.h"
#include "graph/numpy/reductions.h"
#include "graph/numpy/ufuncs.h"

namespace rune::bindings {

using graph::numpy::Axes;
using graph::numpy::Operand;

namespace {

// The arguments of a call through __array_function__.
struct Call {
  Arguments positional;
  PyObject* named;  // a dict

  Py_ssize_t num_named() const { return PyDict_GET_SIZE(named); }
  PyObject* find(const char* name) const { return PyDict_GetItemString(named, name); }
};

// Reads None, an int or a tuple of ints as axes of an array of this rank.
std::optional<Axes> axes_of(PyObject* given, int64_t rank) {
  if (given == Py_None) return Axes();
  Ints axes;
  for (PyObject* axis : items_or_one(given)) {
    if (!is_position(axis)) return {};
    axes.push_back(PyLong_AsLongLong(axis));
    if (axes.back() < -rank || axes.back() >= rank) return {};
  }
  return Axes(axes);
}

// Whether each element of the reduction's result comes from one element.
bool is_of_ones(const Shape& shape, const Axes& axes) {
  const auto rank = static_cast<int64_t>(shape.size());
  for (int64_t i = 0; i < rank; ++i) {
    const bool is_reduced = !axes || std::ranges::any_of(*axes, [&](int64_t axis) {
      return axis == i || axis == i - rank;
    });
    if (is_reduced && shape[i] != Dim(1)) return false;
  }
  return true;
}

// statistics.mean_of for float32 and float64. Nothing for other dtypes and for empty arrays.
std::optional<Operand> mean(PyGraph& g, const Operand& x, const Axes& axes, bool keepdims) {
  const DType dtype = graph::numpy::dtype_of(g, x);
  if (dtype != DType::Float32 && dtype != DType::Float64) return {};
  const Shape& shape = g.shape(x.value);
  const auto rank = static_cast<int64_t>(shape.size());
  int64_t count = 1;
  for (const int64_t axis : graph::numpy::normalize_axes("mean", axes, rank)) {
    if (!shape[axis].is_constant()) return {};
    count *= shape[axis].constant();
  }
  if (count == 0) return {};
  const Operand total = graph::numpy::reduce(g, "sum", x, axes, keepdims, dtype);
  const Operand divisor = g.constant(Scalar::of(dtype, static_cast<double>(count)));
  return graph::numpy::ufunc(g, "divide", {total, divisor})[0];
}

// reductions.reduce_array(name, a, axis, keepdims=keepdims), and numpy.mean
std::optional<PyObject*> reduction(const ActiveTrace& active, std::string_view name,
                                   const Call& call) {
  const size_t n = call.positional.size();
  PyObject *axis = call.find("axis"), *keepdims = call.find("keepdims");
  if (n < 1 || n + (axis != nullptr) > 2) return {};
  if (call.num_named() != (axis != nullptr) + (keepdims != nullptr)) return {};
  if (keepdims && !PyBool_Check(keepdims)) return {};
  const TracerObject* a = traced_array(call.positional[0], active);
  PyObject* known = a && rank(*a) > 0 ? known_value(*a, active.trace.ptr()) : nullptr;
  if (!known) return {};
  if (n == 2) axis = call.positional[1];
  const auto axes = axes_of(axis ? axis : Py_None, rank(*a));
  if (!axes) return {};
  const auto given = static_cast<int64_t>(*axes ? (*axes)->size() : rank(*a));
  const int64_t left = keepdims == Py_True ? rank(*a) : rank(*a) - given;
  if (left > 1 && !is_c_ordered(*a)) return {};  // NumPy knows the layout
  const auto value = py::reinterpret_borrow<PyValue>(known);
  note_line();
  PyGraph& g = *active.graph;
  // NumPy adds a single element to 0.0, which makes -0.0 positive.
  if (name == "sum" && is_of_ones(g.shape(value.operand().value), *axes)) return {};
  const Operand& x = value.operand();
  const std::optional<Operand> result =
      name == "mean" ? mean(g, x, *axes, keepdims == Py_True)
                     : graph::numpy::reduce(g, name, x, *axes, keepdims == Py_True);
  if (!result) return {};
  return finish(active, *result, call.positional.first(1), false);
}

// elementwise._where
std::optional<PyObject*> choice(const ActiveTrace& active, const Call& call) {
  if (call.positional.size() != 3 || call.num_named() > 0) return {};
  for (PyObject* x : call.positional) {
    constexpr int64_t kMost = 127;  // the greatest number that all dtypes of integers hold
    if (!PyLong_CheckExact(x)) continue;
    if (!is_position(x) || PyLong_AsLongLong(x) < 0 || PyLong_AsLongLong(x) > kMost) return {};
  }
  const auto given = usual(active, call.positional);
  if (!given || !given->has_array) return {};
  note_line();
  const graph::numpy::Operands& values = given->values;
  const Operand result = graph::numpy::where(*active.graph, values[0], values[1], values[2]);
  return finish(active, result, call.positional);
}

// Storage.note_reshaped
void note_reshaped(const TracerObject& a) {
  PyObject* const storage = a[TracerField::Storage];
  StorageObject& behind = storage_of(a);
  const auto known = py::reinterpret_borrow<py::tuple>(behind[StorageField::Reshaped]);
  for (const py::handle other : known)
    if (other.ptr() == storage) return;
  const py::object all = known + py::make_tuple(py::handle(storage));
  behind.set(StorageField::Reshaped, all.ptr());
}

// shapes._transpose of all axes
std::optional<PyObject*> transpose(const ActiveTrace& active, const Call& call) {
  const size_t n = call.positional.size();
  if (n < 1 || n > 2 || call.num_named() > 0) return {};
  if (n == 2 && call.positional[1] != Py_None) return {};
  const TracerObject* a = traced_array(call.positional[0], active);
  PyObject* known = a ? known_value(*a, active.trace.ptr()) : nullptr;
  if (!known) return {};
  const auto value = py::reinterpret_borrow<PyValue>(known);
  Ints axes;
  for (Py_ssize_t i = rank(*a); i-- > 0;) axes.push_back(i);
  note_line();
  PyGraph& g = *active.graph;
  const PyValue transposed = to_value(g, graph::numpy::transpose(g, value.operand(), axes));
  py::object view = make_view(*a, make_step("transpose", py::tuple(py::cast(axes))),
                              transposed.ptr(), active.line.ptr());
  return look(active) ? view.release().ptr() : nullptr;
}

// Reads a size or a tuple of sizes. Nothing for other objects.
std::optional<Shape> shape_given(PyObject* given) {
  Shape shape;
  for (PyObject* size : items_or_one(given)) {
    if (!is_position(size)) return {};
    shape.emplace_back(PyLong_AsLongLong(size));
  }
  return shape;
}

// shapes._reshape for whole arrays in C order, for which NumPy makes views.
std::optional<PyObject*> reshape(const ActiveTrace& active, const Call& call) {
  if (call.positional.size() != 2 || call.num_named() > 0) return {};
  const TracerObject* a = traced_array(call.positional[0], active);
  if (!a || rank(*a) == 0 || PyTuple_GET_SIZE((*a)[TracerField::Steps]) > 0) return {};
  if (storage_of(*a).has(StorageField::Captured) || !is_c_ordered(*a)) return {};
  PyObject* known = known_value(*a, active.trace.ptr());
  const auto shape = known ? shape_given(call.positional[1]) : std::nullopt;
  if (!shape) return {};
  const auto value = py::reinterpret_borrow<PyValue>(known);
  note_line();
  PyGraph& g = *active.graph;
  const Operand result = graph::numpy::reshape(g, value.operand(), *shape);
  if (g.shape(result.value) == g.shape(value.operand().value)) return {};
  if (!active.is_segmented) note_reshaped(*a);
  const PyValue reshaped = to_value(g, result);
  const auto wanted = py::reinterpret_borrow<py::object>(shape_of_value(reshaped.ptr()));
  py::object view = make_view(*a, make_step("reshape", wanted), reshaped.ptr(), active.line.ptr());
  return look(active) ? view.release().ptr() : nullptr;
}

// Tracer.__array_function__(function, types, args, kwargs)
std::optional<PyObject*> attempt_function(const ShortcutObject& self, Arguments args) {
  const ActiveTrace* active = active_trace();
  if (!active || args.size() != 5 || !active->graph->open_loops.empty()) return {};
  PyObject* found = PyDict_GetItemWithError(self.about, args[1]);
  if (!found || !PyTuple_CheckExact(args[3]) || !PyDict_CheckExact(args[4])) return {};
  const Call call{items_of(args[3]), args[4]};
  const auto name = py::handle(found).cast<std::string_view>();
  if (name == "where") return choice(*active, call);
  if (name == "transpose") return transpose(*active, call);
  if (name == "reshape") return reshape(*active, call);
  return reduction(*active, name, call);
}

// Tracer.sum and other methods that reduce: NumPy's function of the same name, without NumPy's
// dispatch.
std::optional<PyObject*> attempt_method(const ShortcutObject& self, Arguments args) {
  const ActiveTrace* active = active_trace();
  if (!active || !active->graph->open_loops.empty()) return {};
  static PyObject* const no_names = PyDict_New();
  return reduction(*active, py::handle(self.about).cast<std::string_view>(), {args, no_names});
}

// Reads a dtype. The stand-in of a class of scalars has the class's dtype.
DType dtype_given(PyObject* x) {
  const bool is_array = as_tracer(x) || is_ndarray(x, false);
  if (!is_array && !PyType_Check(x) && !PyUnicode_Check(x) && !py::isinstance<py::dtype>(x)) {
    const py::object dtype = py::getattr(x, "dtype", py::none());
    if (py::isinstance<py::dtype>(dtype)) return to_dtype(dtype);
  }
  return to_dtype(x);
}

// Tracer.astype(dtype): protocol._astype
std::optional<PyObject*> attempt_astype(const ShortcutObject&, Arguments args) {
  const ActiveTrace* active = active_trace();
  if (!active || args.size() != 2) return {};
  const TracerObject* x = traced_array(args[0], *active);
  PyObject* known = x && rank(*x) > 0 ? known_value(*x, active->trace.ptr()) : nullptr;
  if (!known) return {};
  const auto value = py::reinterpret_borrow<PyValue>(known);
  if (is_complex(graph::numpy::dtype_of(*active->graph, value.operand()))) return {};
  const DType dtype = dtype_given(args[1]);
  note_line();
  const Operand result = graph::numpy::astype(*active->graph, value.operand(), dtype);
  return finish(*active, result, args.first(1));
}

}  // namespace

PyObject* called_ufunc(const ShortcutObject& self, Arguments args) {
  const bool is_call = PyUnicode_CompareWithASCIIString(args[2], "__call__") == 0;
  return is_call ? PyDict_GetItemWithError(self.about, args[1]) : nullptr;
}

std::optional<PyObject*> attempt_ufunc_out(const ShortcutObject& self, Arguments args) {
  const ActiveTrace* active = active_trace();
  PyObject* name = active && args.size() > 4 ? called_ufunc(self, args) : nullptr;
  if (!name) return {};
  PyObject* out = args.back();
  if (!PyTuple_CheckExact(out) || PyTuple_GET_SIZE(out) != 1) return {};
  const TracerObject* target = traced_array(PyTuple_GET_ITEM(out, 0), *active);
  const auto ufunc = py::handle(name).cast<std::string_view>();
  if (!target || !is_written_to(*target) || ufunc == "matmul") return {};
  const auto given = usual(*active, args.subspan(3, args.size() - 4));
  if (!given) return {};
  note_line();
  const Operand result = graph::numpy::ufunc(*active->graph, ufunc, given->values)[0];
  if (!write_result(*active, *target, result)) return {};
  active = active_trace();
  return look(*active) ? py::handle(PyTuple_GET_ITEM(out, 0)).inc_ref().ptr() : nullptr;
}

void bind_function_shortcuts(py::module_& m) {
  m.def(
      "shorten_functions",
      [](const py::object& rule, const py::dict& names) {
        return make_shortcut(rule, names, &attempt_function);
      },
      py::arg("rule"), py::arg("names"),
      "A Tracer.__array_function__ that computes functions of these names without the rule.");
  m.def(
      "shorten_reduction",
      [](const py::object& rule, const py::str& name) {
        return make_shortcut(rule, name, &attempt_method);
      },
      py::arg("rule"), py::arg("name"),
      "A method of Tracer that computes most reductions without the rule. `name`: NumPy's "
      "function.");
  m.def(
      "shorten_astype",
      [](const py::object& rule) { return make_shortcut(rule, py::none(), &attempt_astype); },
      py::arg("rule"), "Tracer.astype");
}

}  // namespace rune::bindings
