#include "bindings/leaf_key.h"

#include <pybind11/gil_safe_call_once.h>

#include "bindings/array.h"

namespace rune::bindings {

namespace {

bool append_array_or_number_key(py::handle leaf, std::string& key,
                                std::span<const int64_t> dynamic) {
  const bool on_device = is_array(leaf);
  if (on_device || is_ndarray(leaf, true)) {
    const ArrayHeader header = header_of(leaf);
    if (!header.dtype) return false;
    for (const int64_t axis : dynamic)
      if (axis < -header.rank || axis >= header.rank) return false;
    key += on_device ? 'D' : 'A';
    key += static_cast<char>(*header.dtype);
    key += static_cast<char>(header.rank);
    const size_t shape_at = key.size();
    key.append(reinterpret_cast<const char*>(header.shape), header.rank * sizeof(ssize_t));
    for (const int64_t axis : dynamic) {
      const int64_t at = axis < 0 ? axis + header.rank : axis;
      if (header.shape[at] == 0) continue;  // traced by itself
      key.replace(shape_at + at * sizeof(ssize_t), sizeof(ssize_t), sizeof(ssize_t), '\xff');
    }
    if (on_device) {
      Py_ssize_t size = 0;
      const char* device = PyUnicode_AsUTF8AndSize(device_of(leaf).ptr(), &size);
      key += static_cast<char>(size);
      key.append(device, size);
    }
    return true;
  }
  if (PyFloat_CheckExact(leaf.ptr())) {
    key += 'F';
    return true;
  }
  if (PyLong_CheckExact(leaf.ptr())) {
    int overflow = 0;
    PyLong_AsLongLongAndOverflow(leaf.ptr(), &overflow);
    if (overflow != 0) return false;
    key += 'I';
    return true;
  }
  return false;
}

// NumPy scalars are as strong as 0-d arrays, but nothing is ever written to them.
bool append_numpy_scalar_key(py::handle leaf, std::string& key) {
  PYBIND11_CONSTINIT static py::gil_safe_call_once_and_store<py::object> generic;
  generic.call_once_and_store_result([] { return py::module_::import("numpy").attr("generic"); });
  if (PyObject_IsInstance(leaf.ptr(), generic.get_stored().ptr()) != 1) return false;
  const auto dtype = dtype_of(py::dtype::from_args(leaf.attr("dtype")));
  if (!dtype) return false;
  key += 'G';
  key += static_cast<char>(*dtype);
  return true;
}

}  // namespace

bool append_leaf_key(py::handle leaf, std::string& key, std::span<const int64_t> dynamic) {
  return append_array_or_number_key(leaf, key, dynamic) || append_numpy_scalar_key(leaf, key);
}

}  // namespace rune::bindings
