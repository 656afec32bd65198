// Shortcuts for the rules that read and write arrays by integers and slices, and for operations in
// place.
#include <algorithm>
#include <cmath>

#include "bindings/bindings.h"
#include "bindings/context.h"
#include "bindings/graph_arguments.h"
#include "bindings/shortcuts.h"
#include "bindings/tracer.h"
#include "bindings/value.h"
#include "graph/numpy/indexing.h"
#include "graph/numpy/movement.h"
#include "graph/numpy/ufuncs.h"

namespace rune::bindings {

using graph::numpy::Operand;

namespace {

template <class... Args>
py::object call_method(PyObject* object, PyObject* name, Args... args) {
  auto result =
      py::reinterpret_steal<py::object>(PyObject_CallMethodObjArgs(object, name, args..., nullptr));
  if (!result) throw py::error_already_set();
  return result;
}

bool is_bound(PyObject* x) {
  return x == Py_None || PyLong_CheckExact(x);
}

bool is_plain_slice(PyObject* x) {
  if (!PySlice_Check(x)) return false;
  const auto* slice = reinterpret_cast<PySliceObject*>(x);
  return is_bound(slice->start) && is_bound(slice->stop) && is_bound(slice->step);
}

// The items of an index of integers, slices of integers, None and Ellipsis.
struct Basic {
  py::list items;
  py::ssize_t consumed = 0;  // number of axes that integers and slices index
  bool has_ellipsis = false;
};

// Reads an index. Nothing if it has other items.
std::optional<Basic> basic_items(PyObject* index) {
  Basic result;
  for (PyObject* item : items_or_one(index)) {
    if (is_position(item) || is_plain_slice(item))
      ++result.consumed;
    else if (item == Py_Ellipsis)
      result.has_ellipsis = true;
    else if (item != Py_None)
      return {};
    result.items.append(py::handle(item));
  }
  return result;
}

// Whether an integer among the items must be a value of the program, not a constant
// (Trace.position).
bool has_values(const ActiveTrace& active, const TracerObject& x, const Basic& index) {
  if (!active.is_segmented) return false;
  static PyObject* const name = PyUnicode_InternFromString("position");
  const py::object trace = active.trace;
  py::ssize_t axis = 0;
  for (const py::handle item : index.items) {
    if (PyLong_Check(item.ptr()) && axis < rank(x)) {
      PyObject* size = PyTuple_GET_ITEM(x[TracerField::Shape], axis);
      if (!call_method(trace.ptr(), name, item.ptr(), py::int_(axis).ptr(), size).is_none())
        return true;
    }
    if (item.ptr() == Py_Ellipsis)
      axis += rank(x) - index.consumed;
    else
      axis += !item.is_none();
  }
  return false;
}

// Tracer.__getitem__(index): rules.indexing.read.getitem
std::optional<PyObject*> attempt_getitem(const ShortcutObject&, Arguments args) {
  const ActiveTrace* active = active_trace();
  if (!active || args.size() != 2 || !active->graph->open_loops.empty()) return {};
  const TracerObject* x = traced_array(args[0], *active);
  const auto index = x ? basic_items(args[1]) : std::nullopt;
  if (!index) return {};
  note_line();
  if (active->may_shuffle && rank(*x) > 1) return {};
  PyObject* known = known_value(*x, active->trace.ptr());
  if (!known) return {};
  const auto value = py::reinterpret_borrow<PyValue>(known);
  if (has_values(*active, *x, *index)) return {};
  const py::object step = make_step("index", index->items);
  py::object part = py::none();
  if (active->is_segmented) {
    static PyObject* const name = PyUnicode_InternFromString("part_in_memory");
    const py::object trace = active->trace;
    part = call_method(trace.ptr(), name, step.ptr(), value.ptr());
    active = active_trace();
  }
  PyGraph& g = *active->graph;
  if (part.is_none())
    part = to_value(g, graph::numpy::index(g, value.operand(), to_index(g, index->items)));
  PyObject* line = active->line.ptr();
  const bool is_element = PyTuple_GET_SIZE(shape_of_value(part.ptr())) == 0 && !index->has_ellipsis;
  py::object result = is_element ? make_tracer(active->trace.ptr(), part.ptr(), line)
                                 : make_view(*x, step, part.ptr(), line);
  if (!look(*active)) return nullptr;
  return result.release().ptr();
}

// Whether only Storage.write may write to this storage: it does more there than to make a version.
bool is_watched(const ActiveTrace& active, const StorageObject& storage) {
  using enum StorageField;
  static PyObject* const loops_name = PyUnicode_InternFromString("loops");
  static PyObject* const watches = PyUnicode_InternFromString("watches_writes");
  if (active.is_segmented || storage.has(Captured) || storage.has(Array) || storage.is(IsExposed) ||
      !storage.has(Value) || PyTuple_GET_SIZE(storage[Reshaped]) > 0)
    return true;
  const py::object loops = py::getattr(active.trace, loops_name);
  return !loops.is_none() && py::getattr(loops, watches).ptr() == Py_True;
}

// `old` with its view through the steps, which are indices, replaced by `part`, which may be 0-d.
Operand put(PyGraph& g, const Operand& old, std::span<PyObject* const> steps, const Operand& part) {
  if (steps.empty()) return part;
  const auto items = to_index(g, py::reinterpret_borrow<py::list>(items_of_step(steps[0])));
  const auto rest = steps.subspan(1);
  return graph::numpy::put(
      g, old, items, rest.empty() ? part : put(g, graph::numpy::index(g, old, items), rest, part));
}

// Storage.write(trace, steps, part). The view has this shape, to which `part` is broadcast.
void write(const ActiveTrace& active, const TracerObject& x, PyObject* steps, const Operand& part,
           const Shape& shape) {
  PyGraph& g = *active.graph;
  const auto is_index = [](PyObject* step) { return items_of_step(step) != nullptr; };
  StorageObject& storage = storage_of(x);
  if (is_watched(active, storage) || !std::ranges::all_of(items_of(steps), is_index)) {
    static PyObject* const name = PyUnicode_InternFromString("write");
    const py::object trace = active.trace;
    const PyValue whole = to_value(g, graph::numpy::broadcast_to(g, part, shape));
    call_method(x[TracerField::Storage], name, trace.ptr(), steps, whole.ptr());
    return;
  }
  using enum StorageField;
  const auto old = py::reinterpret_borrow<PyValue>(storage[Value]);
  const bool is_number = PyTuple_GET_SIZE(steps) > 0 && g.shape(part.value).empty();
  const Operand fitting = is_number ? part : graph::numpy::broadcast_to(g, part, shape);
  const PyValue written = to_value(g, put(g, old.operand(), items_of(steps), fitting));
  storage.set(Value, written.ptr());
  const long version = PyLong_AsLong(storage[Version]);
  storage.set(Version, py::int_(version + 1).ptr());
}

// A Python number converted to a dtype, if NumPy stores it without a warning or an error.
std::optional<Scalar> stored(PyObject* x, DType dtype) {
  const bool is_float = dtype == DType::Float64 || dtype == DType::Float32;
  if (PyFloat_CheckExact(x) && is_float) {
    const double number = PyFloat_AS_DOUBLE(x);
    const bool overflows = dtype == DType::Float32 && std::isfinite(number) &&
                           !std::isfinite(static_cast<float>(number));
    if (overflows) return {};
    return Scalar::of(dtype, number);
  }
  if (!PyLong_CheckExact(x)) return {};
  int overflow = 0;
  const int64_t number = PyLong_AsLongLongAndOverflow(x, &overflow);
  constexpr int64_t kExact = int64_t{1} << 24;
  if (overflow != 0) return {};
  if (dtype == DType::Int64) return Scalar::of(dtype, number);
  if (is_float && -kExact <= number && number <= kExact) return Scalar::of(dtype, number);
  return {};
}

// The value that an assignment of x writes to elements of this dtype, if x is a number or an array
// of the dtype.
std::optional<Operand> assigned(const ActiveTrace& active, PyObject* x, DType dtype) {
  PyGraph& g = *active.graph;
  if (const auto number = stored(x, dtype)) return Operand(g.constant(*number));
  const TracerObject* tracer = as_tracer(x);
  PyObject* value = tracer ? known_value(*tracer, active.trace.ptr()) : nullptr;
  if (!value) return {};
  const Operand operand = py::reinterpret_borrow<PyValue>(value).operand();
  const bool is_strong = !operand.weak && !operand.literal && !unsure_kind(g, operand);
  if (!is_strong || graph::numpy::dtype_of(g, operand) != dtype) return {};
  return operand;
}

bool are_plain(PyObject* items) {
  if (!PyList_CheckExact(items)) return false;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items); ++i) {
    PyObject* item = PyList_GET_ITEM(items, i);
    if (!is_position(item) && !is_plain_slice(item) && item != Py_None && item != Py_Ellipsis)
      return false;
  }
  return true;
}

// Whether `view` is certainly x[items].
bool is_view_of(const TracerObject& view, const TracerObject& x, const py::list& items) {
  PyObject *steps = view[TracerField::Steps], *first = x[TracerField::Steps];
  const Py_ssize_t n = PyTuple_GET_SIZE(first);
  if (PyTuple_GET_SIZE(steps) != n + 1) return false;
  for (Py_ssize_t i = 0; i < n; ++i)
    if (PyTuple_GET_ITEM(steps, i) != PyTuple_GET_ITEM(first, i)) return false;
  PyObject* last = items_of_step(PyTuple_GET_ITEM(steps, n));
  return last && are_plain(last) && items.equal(py::handle(last));
}

// Tracer.__setitem__(index, value): rules.indexing.read.setitem
std::optional<PyObject*> attempt_setitem(const ShortcutObject&, Arguments args) {
  const ActiveTrace* active = active_trace();
  if (!active || args.size() != 3 || !active->graph->open_loops.empty()) return {};
  const TracerObject* x = traced_array(args[0], *active);
  const auto index = x && x->is(TracerField::Writeable) ? basic_items(args[1]) : std::nullopt;
  if (!index) return {};
  const TracerObject* given = as_tracer(args[2]);
  note_line();
  if (given && (*given)[TracerField::Storage] == (*x)[TracerField::Storage]) {
    // This ends x[index] += ..., which has already written through the view.
    if (!is_view_of(*given, *x, index->items)) return {};
    return look(*active) ? py::none().release().ptr() : nullptr;
  }
  PyObject* known = known_value(*x, active->trace.ptr());
  if (!known) return {};
  const auto old = py::reinterpret_borrow<PyValue>(known);
  if (has_values(*active, *x, *index)) return {};
  PyGraph& g = *active->graph;
  const auto part = assigned(*active, args[2], graph::numpy::dtype_of(g, old.operand()));
  if (!part) return {};
  const Shape shape = graph::numpy::indexed_shape(g, old.operand(), to_index(g, index->items));
  if (shape.empty() && !g.shape(part->value).empty()) return {};
  write(*active, *x, with_step(*x, make_step("index", index->items)).ptr(), *part, shape);
  active = active_trace();
  return look(*active) ? py::none().release().ptr() : nullptr;
}

// x op= other for a traced array x: protocol._apply_in_place.
std::optional<PyObject*> attempt_in_place(const ShortcutObject& self, Arguments args) {
  const ActiveTrace* active = active_trace();
  if (!active || args.size() != 2) return {};
  const TracerObject* x = traced_array(args[0], *active);
  if (!x || !is_written_to(*x)) return {};
  const auto given = usual(*active, args);
  if (!given) return {};
  note_line();
  PyGraph& g = *active->graph;
  const auto ufunc = py::handle(self.about).cast<std::string_view>();
  const Operand result = graph::numpy::python_operator(g, ufunc, given->values);
  if (!write_result(*active, *x, result)) return {};
  active = active_trace();
  return look(*active) ? py::handle(args[0]).inc_ref().ptr() : nullptr;
}

}  // namespace

bool is_written_to(const TracerObject& x) {
  return x.is(TracerField::Writeable) && rank(x) > 0;
}

bool write_result(const ActiveTrace& active, const TracerObject& x, const Operand& result) {
  PyObject* known = known_value(x, active.trace.ptr());
  if (!known) return false;
  const PyGraph& g = *active.graph;
  const graph::Value old = py::reinterpret_borrow<PyValue>(known).operand().value;
  if (g[result.value].dtype() != g[old].dtype() || g.shape(result.value) != g.shape(old))
    return false;
  write(active, x, x[TracerField::Steps], result, g.shape(old));
  return true;
}

void bind_index_shortcuts(py::module_& m) {
  const auto define = [&](const char* name, Attempt* attempt, const char* doc) {
    m.def(
        name,
        [attempt](const py::object& rule) { return make_shortcut(rule, py::none(), attempt); },
        py::arg("rule"), doc);
  };
  define("shorten_getitem", &attempt_getitem, "Tracer.__getitem__");
  define("shorten_setitem", &attempt_setitem, "Tracer.__setitem__");
  m.def(
      "shorten_in_place",
      [](const py::object& rule, const py::str& ufunc) {
        return make_shortcut(rule, ufunc, &attempt_in_place);
      },
      py::arg("rule"), py::arg("ufunc"), "A method for an operator that writes to a traced array.");
}

}  // namespace rune::bindings
