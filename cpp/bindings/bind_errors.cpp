// Translates C++ errors to the exceptions of rune_jit.errors and to Python's own.
#include <new>

#include "base/error.h"
#include "bindings/bindings.h"
#include "graph/numpy/operands.h"

namespace rune::bindings {

namespace {

void raise(py::handle type, const char* message) {
  PyErr_SetString(type.ptr(), message);
}

void raise_ours(const char* name, const char* message) {
  raise(py::module_::import("rune_jit.errors").attr(name), message);
}

void raise_user_error(const UserError& e) {
  switch (e.kind()) {
    case ErrorKind::Value: return raise(PyExc_ValueError, e.what());
    case ErrorKind::Type: return raise(PyExc_TypeError, e.what());
    case ErrorKind::Index: return raise(PyExc_IndexError, e.what());
    case ErrorKind::DType: return raise_ours("DTypeError", e.what());
    case ErrorKind::Unsupported: return raise_ours("UnsupportedOpError", e.what());
    case ErrorKind::Undecided: return raise_ours("ConcretizationError", e.what());
    case ErrorKind::Parse: return raise_ours("ParseError", e.what());
    case ErrorKind::Runtime: return raise(PyExc_RuntimeError, e.what());
    case ErrorKind::Leak: return raise_ours("TracerLeakError", e.what());
    case ErrorKind::Memory: return raise(PyExc_MemoryError, e.what());
  }
}

// Sets the Python exception for an error of this library. Rethrows other errors.
void raise_error_of_ours(const std::exception_ptr& pointer) {
  try {
    if (pointer) std::rethrow_exception(pointer);
  } catch (const graph::numpy::OverflowError& e) {
    raise(PyExc_OverflowError, e.what());
  } catch (const graph::numpy::AxisError& e) {
    raise(py::module_::import("numpy").attr("exceptions").attr("AxisError"), e.what());
  } catch (const UserError& e) {
    raise_user_error(e);
  } catch (const InternalError& e) {
    raise_ours("InternalError", e.what());
  }
}

}  // namespace

void raise_current_exception() {
  try {
    raise_error_of_ours(std::current_exception());
  } catch (py::error_already_set& e) {
    e.restore();
  } catch (const py::builtin_exception& e) {
    e.set_error();
  } catch (const std::bad_alloc&) {
    raise(PyExc_MemoryError, "not enough memory");
  } catch (const std::exception& e) {
    raise(PyExc_RuntimeError, e.what());
  }
}

void bind_errors(py::module_&) {
  py::register_local_exception_translator(
      // NOLINTNEXTLINE(performance-unnecessary-value-param): the type that pybind11 takes
      [](std::exception_ptr pointer) { raise_error_of_ours(pointer); });
}

}  // namespace rune::bindings
