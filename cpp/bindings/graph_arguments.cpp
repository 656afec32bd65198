#include "bindings/graph_arguments.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "bindings/value.h"

namespace rune::bindings {

using graph::numpy::IndexItems;
using graph::numpy::Operand;
using graph::numpy::Operands;

namespace {

std::optional<Operand> literal(py::handle x) {
  if (PyBool_Check(x.ptr())) return graph::numpy::Literal::of(x.ptr() == Py_True);
  if (PyLong_CheckExact(x.ptr())) {
    int overflow = 0;
    const long long small = PyLong_AsLongLongAndOverflow(x.ptr(), &overflow);
    graph::numpy::Literal result = graph::numpy::Literal::of(static_cast<int64_t>(small));
    if (overflow != 0) {
      const unsigned long long large = overflow > 0 ? PyLong_AsUnsignedLongLong(x.ptr()) : 0;
      const bool fits = overflow > 0 && !PyErr_Occurred();
      PyErr_Clear();
      result.integer = fits ? static_cast<__int128>(large) : (__int128{overflow} << 100);
      result.real = PyLong_AsDouble(x.ptr());
      if (PyErr_Occurred()) throw py::error_already_set();
    }
    return result;
  }
  if (PyFloat_CheckExact(x.ptr())) return graph::numpy::Literal::of(PyFloat_AS_DOUBLE(x.ptr()));
  if (PyComplex_CheckExact(x.ptr())) {
    const Py_complex number = PyComplex_AsCComplex(x.ptr());
    return graph::numpy::Literal::of(std::complex<double>(number.real, number.imag));
  }
  return std::nullopt;
}

// Reads a slice's bound: None, a Size, or an int. Larger ints are clipped, because a slice ends
// where the array does.
std::optional<Dim> slice_bound(py::handle given, const PyGraph& g) {
  if (given.is_none()) return std::nullopt;
  if (!PyLong_Check(given.ptr())) return to_dim(given, g.trace);
  int overflow = 0;
  const int64_t bound = PyLong_AsLongLongAndOverflow(given.ptr(), &overflow);
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  if (overflow != 0) return overflow > 0 ? kMost : -kMost;
  return std::max(bound, -kMost);
}

}  // namespace

Operand to_operand(py::handle x) {
  if (const auto value = literal(x)) return *value;
  if (!py::isinstance<PyValue>(x))
    user_error(ErrorKind::Unsupported, "operand: cannot trace a ",
               std::string(py::str(py::type::of(x).attr("__name__"))));
  return py::reinterpret_borrow<PyValue>(x).operand();
}

Operands to_operands(const py::sequence& xs) {
  Operands result;
  for (const py::handle x : xs) result.push_back(to_operand(x));
  return result;
}

std::optional<Kind> weak_kind(const py::object& name) {
  if (name.is_none()) return std::nullopt;
  const auto text = name.cast<std::string>();
  if (text == "int") return Kind::Int;
  if (text == "bool") return Kind::Bool;
  if (text == "complex") return Kind::Complex;
  RUNE_CHECK(text == "float", "weak kind ", text);
  return Kind::Float;
}

IndexItems to_index(const PyGraph& g, const py::sequence& items) {
  using ItemKind = graph::numpy::IndexItem::Kind;
  IndexItems result;
  for (const py::handle item : items) {
    graph::numpy::IndexItem out{};
    if (item.is_none()) {
      out.kind = ItemKind::NewAxis;
    } else if (item.ptr() == Py_Ellipsis) {
      out.kind = ItemKind::Ellipsis;
    } else if (PySlice_Check(item.ptr())) {
      const auto* slice = reinterpret_cast<PySliceObject*>(item.ptr());
      out.kind = ItemKind::Slice;
      out.start = slice_bound(slice->start, g);
      out.stop = slice_bound(slice->stop, g);
      if (const auto step = slice_bound(slice->step, g)) out.step = step->constant();
    } else if (py::isinstance<PyValue>(item)) {
      out.kind = ItemKind::Array;
      out.array = to_operand(item);
    } else {
      out.kind = ItemKind::Integer;
      out.integer = to_dim(item, g.trace);
    }
    result.push_back(std::move(out));
  }
  return result;
}

graph::DimPairs to_dim_pairs(const PyGraph& g, const py::sequence& pairs) {
  graph::DimPairs result;
  for (const py::handle pair : pairs) {
    const auto [before, after] = pair.cast<std::pair<py::object, py::object>>();
    result.emplace_back(to_dim(before, g.trace), to_dim(after, g.trace));
  }
  return result;
}

}  // namespace rune::bindings
