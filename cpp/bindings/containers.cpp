// Functions on containers that a traced function may hold.
#include "bindings/bindings.h"
#include "bindings/shortcuts.h"
#include "bindings/tracer.h"
#include "bindings/value.h"

namespace rune::bindings {

namespace {

template <class Function>
void for_each_item(PyObject* sequence, Function f) {
  PyObject** const items = PySequence_Fast_ITEMS(sequence);
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sequence); ++i) f(items[i]);
}

// The containers around an item, outermost first. A container may hold itself.
class Around {
 public:
  Around(PyObject* container, const Around* outer) : container_(container), outer_(outer) {}

  bool contains(PyObject* x) const {
    for (const Around* at = this; at; at = at->outer_)
      if (at->container_ == x) return true;
    return false;
  }

 private:
  PyObject* container_;
  const Around* outer_;
};

bool holds_traced(PyObject* x, const Around* outer = nullptr) {
  if (const TracerObject* tracer = as_tracer(x))
    return !storage_of(*tracer).has(StorageField::Array);
  if (is_python_number(x) || PyUnicode_CheckExact(x) || x == Py_None) return false;
  if (outer && outer->contains(x)) return false;
  const Around around(x, outer);
  if (PySlice_Check(x)) {
    const auto* slice = reinterpret_cast<PySliceObject*>(x);
    return holds_traced(slice->start, &around) || holds_traced(slice->stop, &around) ||
           holds_traced(slice->step, &around);
  }
  bool found = false;
  if (PyTuple_Check(x) || PyList_Check(x)) {
    for_each_item(x, [&](PyObject* item) { found = found || holds_traced(item, &around); });
    return found;
  }
  if (!PyDict_Check(x)) return py::isinstance<PySize>(x);
  PyObject *name = nullptr, *item = nullptr;
  for (Py_ssize_t at = 0; !found && PyDict_Next(x, &at, &name, &item);)
    found = holds_traced(item, &around);
  return found;
}

void collect_tracers(PyObject* x, py::list& found, const Around* outer = nullptr) {
  if (as_tracer(x)) found.append(py::handle(x));
  if (outer && outer->contains(x)) return;
  const Around around(x, outer);
  if (PyTuple_Check(x) || PyList_Check(x))
    for_each_item(x, [&](PyObject* item) { collect_tracers(item, found, &around); });
  PyObject *name = nullptr, *item = nullptr;
  if (PyDict_Check(x))
    for (Py_ssize_t at = 0; PyDict_Next(x, &at, &name, &item);)
      collect_tracers(item, found, &around);
}

}  // namespace

PyObject* contains_traced(PyObject*, PyObject* x) {
  return PyBool_FromLong(holds_traced(x));
}

PyObject* tracers_in(PyObject*, PyObject* x) {
  try {
    py::list found;
    collect_tracers(x, found);
    return found.release().ptr();
  } catch (...) {
    raise_current_exception();
  }
  return nullptr;
}

}  // namespace rune::bindings
