// Binds symbolic sizes: the class Size. tracing/sizes.py adds its operators.
#include "base/error.h"
#include "bindings/bindings.h"

namespace rune::bindings {

Dim to_dim(py::handle size, const std::shared_ptr<const void>& trace) {
  if (PyLong_CheckExact(size.ptr())) return size.cast<int64_t>();
  if (py::isinstance<PySize>(size)) {
    const auto& symbolic = size.cast<const PySize&>();
    if (symbolic.trace == trace) return symbolic.dim;
    user_error(ErrorKind::Leak, "the dynamic size \"", symbolic.dim,
               "\" is used outside the function that was traced\n"
               "hint: return it from the function instead of storing it");
  }
  const auto index = py::reinterpret_steal<py::object>(PyNumber_Index(size.ptr()));
  if (!index) throw py::error_already_set();
  return index.cast<int64_t>();
}

Shape to_shape(const py::sequence& sizes, const std::shared_ptr<const void>& trace) {
  Shape result;
  for (const py::handle size : sizes) result.push_back(to_dim(size, trace));
  return result;
}

py::object to_python(const Dim& dim, const std::shared_ptr<const void>& trace) {
  if (dim.is_constant()) return py::int_(dim.constant());
  return py::cast(PySize{dim, trace});
}

py::tuple to_python(const Shape& shape, const std::shared_ptr<const void>& trace) {
  py::tuple result(shape.size());
  for (size_t i = 0; i < shape.size(); ++i) result[i] = to_python(shape[i], trace);
  return result;
}

void bind_sizes(py::module_& m) {
  py::class_<PySize>(m, "Size", "A size that is known when the program runs.")
      .def("__repr__", [](const PySize& s) { return s.dim.text(); })
      .def("__hash__", [](const PySize& s) { return py::hash(py::str(s.dim.text())); })
      .def_property_readonly(
          "is_traced", [](const PySize& s) { return s.trace != nullptr; },
          "Whether the size belongs to a trace, not to a graph that is built node by node.")
      .def_property_readonly(
          "low", [](const PySize& s) { return s.dim.least(); }, "The least value.")
      .def_property_readonly(
          "high", [](const PySize& s) { return s.dim.bound(); }, "The greatest value.")
      .def_property_readonly(
          "names",
          [](const PySize& s) {
            std::vector<std::string> names;
            for (const Dim::Term& term : s.dim.terms()) names.push_back(term.var.name);
            return names;
          },
          "The names of the Dims on which the size depends.")
      .def_property_readonly(
          "coefficients",
          [](const PySize& s) {
            std::map<std::string, int64_t> result;
            for (const Dim::Term& term : s.dim.terms()) result[term.var.name] = term.coefficient;
            return result;
          },
          "The factors of the Dims, by name.")
      .def(
          "plus",
          [](const PySize& s, py::handle other, int64_t factor) {
            return to_python(s.dim + to_dim(other, s.trace) * factor, s.trace);
          },
          py::arg("other"), py::arg("factor") = 1, "The size plus `factor` times an int or a Size.")
      .def(
          "times",
          [](const PySize& s, int64_t factor) { return to_python(s.dim * factor, s.trace); },
          py::arg("factor"))
      .def(
          "is_same",
          [](const PySize& s, const PySize& o) { return s.trace == o.trace && s.dim == o.dim; },
          py::arg("other"), "Whether two sizes are the same expression.");
}

}  // namespace rune::bindings
