// Values of graphs under construction, as Python has them.
#pragma once

#include <memory>
#include <vector>

#include "bindings/bindings.h"
#include "bindings/graph_builder.h"
#include "graph/numpy/operands.h"

namespace rune::bindings {

// An instance of rune_jit._core.Value: a plain type of CPython whose attributes are members,
// because each traced operation makes one and reads them.
class PyValue : public py::object {
 public:
  PYBIND11_OBJECT_DEFAULT(PyValue, py::object, PyValue::is_value)
  // `trace` is the one whose sizes the shape may have.
  PyValue(const graph::numpy::TracedGraph& graph, const graph::numpy::Operand& operand,
          const std::shared_ptr<const void>& trace);

  const graph::numpy::Operand& operand() const;
  static bool is_value(PyObject* object);
};

std::vector<uint32_t> ids_of(const std::vector<graph::Value>& values);

// The shape and dtype of a PyValue, which keeps them.
PyObject* shape_of_value(PyObject* value);
PyObject* dtype_of_value(PyObject* value);

// A result as Python has it. Throws UserError(Unsupported) if the graph has too many nodes.
PyValue to_value(const PyGraph& g, const graph::numpy::Operand& x);
// The value of a NumPy scalar.
PyValue constant(PyGraph& g, const py::object& x);

void bind_values(py::module_& m);

}  // namespace rune::bindings

// In signatures, from which the stub is made: it cannot tell the attributes of plain types.
template <>
struct pybind11::detail::handle_type_name<rune::bindings::PyValue> {
  static constexpr auto name = const_name("object");
};
