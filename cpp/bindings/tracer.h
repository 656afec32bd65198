// The fields of traced arrays and their storages. Their methods are in Python (tracing/tracer.py,
// tracing/storage.py).
#pragma once

#include <array>
#include <cstddef>

#include "bindings/bindings.h"

namespace rune::bindings {

// An object whose fields are Python objects. It is a plain type of CPython, not of pybind11,
// because each traced operation makes and reads such objects. No field is null.
template <class Field>
struct Record {
  PyObject ob_base;  // what PyObject_HEAD declares
  std::array<PyObject*, static_cast<size_t>(Field::Count)> fields;

  PyObject* operator[](Field field) const { return fields[static_cast<size_t>(field)]; }
  void set(Field field, PyObject* value) {
    Py_INCREF(value);
    Py_XSETREF(fields[static_cast<size_t>(field)], value);
  }
  bool has(Field field) const { return (*this)[field] != Py_None; }
  bool is(Field field) const { return (*this)[field] == Py_True; }
};

enum class TracerField : uint8_t {
  Trace,
  Storage,
  Steps,
  Shape,
  Dtype,
  Value,
  Version,
  Writeable,
  MadeAt,
  Count
};
using TracerObject = Record<TracerField>;

enum class StorageField : uint8_t {
  Value,
  Original,
  Array,
  Captured,
  Fill,
  Serial,
  Version,
  Leaf,
  Scalar,
  LayoutUsed,
  OrderFrom,
  OrderKnown,
  InOrderOfOperands,
  Reshaped,
  IsNonzero,
  OfCounters,
  FlagOf,
  IsExposed,
  LaidOutBy,
  InCOrder,
  Count
};
using StorageObject = Record<StorageField>;

// The object if it is a Tracer, or null.
TracerObject* as_tracer(PyObject* object);
StorageObject& storage_of(const TracerObject& tracer);
// The value of the tracer's present version, a reference that the tracer holds. Null if the tracer
// does not know it or belongs to another trace.
PyObject* known_value(const TracerObject& tracer, PyObject* trace);
// Makes a Tracer of this value with a storage of its own. `line` is the user's line.
py::object make_tracer(PyObject* trace, PyObject* value, PyObject* line);
// Does what Tracer._view does for a step that keeps the dtype and allows writes. `value` is the
// view's value.
py::object make_view(const TracerObject& x, const py::object& step, PyObject* value,
                     PyObject* line);
py::object make_step(const char* kind, const py::object& argument);
// The items of a step of the kind "index". Null for a step of another kind.
PyObject* items_of_step(PyObject* step);
// The steps of x followed by `step`: those of a view of the view x.
py::tuple with_step(const TracerObject& x, const py::object& step);

}  // namespace rune::bindings
