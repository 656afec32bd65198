// Declarations that the files of the extension module share. Each file binds one kind of object.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>

#include "types/dtype.h"
#include "types/shape.h"

namespace rune::bindings {

namespace py = pybind11;

void bind_errors(py::module_& m);
void bind_types(py::module_& m);
void bind_graph(py::module_& m);
void bind_array(py::module_& m);
void bind_dlpack(py::module_& m);
void bind_executable(py::module_& m);
void bind_dispatch(py::module_& m);
void bind_driver(py::module_& m);
void bind_hooks(py::module_& m);
void bind_ir(py::module_& m);
void bind_partition(py::module_& m);
void bind_segments(py::module_& m);
void bind_shortcuts(py::module_& m);
void bind_sizes(py::module_& m);
void bind_tracers(py::module_& m);
void bind_context(py::module_& m);

// A symbolic size, as Python has it: its value is known only when the program runs.
struct PySize {
  Dim dim;
  std::shared_ptr<const void> trace;  // to which it belongs; null for graphs built node by node
};
// Reads a size that Python gives: an integer, or a Size of this trace. Throws UserError(Value) for
// a Size of another trace.
Dim to_dim(py::handle size, const std::shared_ptr<const void>& trace = nullptr);
Shape to_shape(const py::sequence& sizes, const std::shared_ptr<const void>& trace = nullptr);
// Makes a Python int or Size.
py::object to_python(const Dim& dim, const std::shared_ptr<const void>& trace = nullptr);
py::tuple to_python(const Shape& shape, const std::shared_ptr<const void>& trace = nullptr);

// Sets the Python exception for the C++ exception that is being handled. For functions that Python
// calls without pybind11.
void raise_current_exception();

// The dtype of a NumPy descriptor of native byte order, or nothing if this library lacks it.
std::optional<DType> dtype_of(py::handle descriptor);
// The dtype that numpy.dtype(anything) gives, including bfloat16 of ml_dtypes. Throws
// UserError(Unsupported) if this library lacks it.
DType to_dtype(py::handle anything);
py::dtype to_numpy(DType dtype);

// An ndarray's header, read without making Python objects. Valid while the array exists.
struct ArrayHeader {
  void* data = nullptr;  // null in memory that the host cannot address
  int rank = 0;
  const ssize_t* shape = nullptr;
  const ssize_t* strides = nullptr;  // bytes
  std::optional<DType> dtype;
  bool contiguous = false;  // in C order, and aligned to its dtype
  bool writeable = false;
  size_t bytes() const;  // of all elements
  // The axes from the largest stride to the smallest one, after those of size 1: one character for
  // each, whose code is the axis's number. Then '1' if there are gaps between the elements, or '0'.
  // Empty if this is C order, or if elements have one place in memory.
  std::string order() const;
};
// The class numpy.ndarray. Null until this module has been loaded.
extern PyTypeObject* ndarray_class;
// Whether this is a numpy.ndarray (or a subclass); `exact` excludes subclasses other than
// numpy.memmap, which computes as ndarray does.
bool is_ndarray(py::handle object, bool exact);
// The header of an ndarray, or of a rune_jit.Array's memory (valid while that memory exists).
ArrayHeader header_of(py::handle array);

}  // namespace rune::bindings
