// Functions on containers that a traced function may hold.
#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

#include "bindings/bindings.h"
#include "bindings/shortcuts.h"
#include "bindings/tracer.h"
#include "bindings/value.h"

namespace rune::bindings {

namespace {

bool is_plain(PyObject* x) {
  return is_python_number(x) || PyUnicode_CheckExact(x) || x == Py_None;
}

bool is_sequence(PyObject* x) {
  return PyTuple_Check(x) || PyList_Check(x);
}

bool is_container(PyObject* x) {
  return is_sequence(x) || PyDict_Check(x) || PySlice_Check(x);
}

// Appends the items of a container, but for plain values.
void append_items(PyObject* container, std::vector<PyObject*>& items) {
  const auto append = [&](PyObject* item) {
    if (!is_plain(item)) items.push_back(item);
  };
  if (PyDict_Check(container)) {
    PyObject *name = nullptr, *item = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(container, &at, &name, &item);) append(item);
  } else if (PySlice_Check(container)) {
    const auto* slice = reinterpret_cast<PySliceObject*>(container);
    for (PyObject* bound : {slice->start, slice->stop, slice->step}) append(bound);
  } else {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(container); ++i)
      append(PySequence_Fast_GET_ITEM(container, i));
  }
}

// Calls `f` with the objects that x holds in nested containers, in order, until it returns true.
// Returns whether it did. `is_opened` says which objects are containers. Each of them is opened
// once, even if it is in many places or holds itself.
template <class Function>
bool any_within(PyObject* x, bool (*is_opened)(PyObject*), Function f) {
  std::unordered_set<PyObject*> opened;
  std::vector<PyObject*> open{x};
  bool is_first = true;
  while (!open.empty()) {
    PyObject* const next = open.back();
    open.pop_back();
    if (!is_opened(next)) {
      if (f(next)) return true;
      continue;
    }
    // (A container with a single reference is in one place only. The first may be opened again.)
    const bool may_be_opened = !std::exchange(is_first, false) && Py_REFCNT(next) > 1;
    if (may_be_opened && !opened.insert(next).second) continue;
    const size_t first = open.size();
    append_items(next, open);
    std::reverse(open.begin() + first, open.end());
  }
  return false;
}

bool is_unknown(PyObject* x) {
  if (const TracerObject* tracer = as_tracer(x))
    return !storage_of(*tracer).has(StorageField::Array);
  return py::isinstance<PySize>(x);
}

}  // namespace

PyObject* contains_traced(PyObject*, PyObject* x) {
  return PyBool_FromLong(any_within(x, is_container, is_unknown));
}

PyObject* contains_tracer(PyObject*, PyObject* x) {
  return PyBool_FromLong(
      any_within(x, is_sequence, [](PyObject* item) { return as_tracer(item) != nullptr; }));
}

PyObject* tracers_in(PyObject*, PyObject* x) {
  try {
    py::list found;
    any_within(x, is_container, [&](PyObject* item) {
      if (as_tracer(item)) found.append(py::handle(item));
      return false;
    });
    return found.release().ptr();
  } catch (...) {
    raise_current_exception();
  }
  return nullptr;
}

}  // namespace rune::bindings
