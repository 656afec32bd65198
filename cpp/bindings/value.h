// Values of graphs under construction, as Python has them.
#pragma once

#include <memory>
#include <vector>

#include "bindings/bindings.h"
#include "bindings/graph_builder.h"
#include "graph/numpy/operands.h"

namespace rune::bindings {

// An instance of rune_jit._core.Value. It is a plain type of CPython whose attributes are members,
// because each traced operation makes and reads such objects.
class PyValue : public py::object {
 public:
  PYBIND11_OBJECT_DEFAULT(PyValue, py::object, PyValue::is_value)
  // The shape may have sizes of `trace`.
  PyValue(const graph::numpy::TracedGraph& graph, const graph::numpy::Operand& operand,
          const std::shared_ptr<const void>& trace);

  const graph::numpy::Operand& operand() const;
  static bool is_value(PyObject* object);
};

std::vector<uint32_t> ids_of(const std::vector<graph::Value>& values);

// The shape and dtype of a PyValue, as references that it holds.
PyObject* shape_of_value(PyObject* value);
PyObject* dtype_of_value(PyObject* value);

// Makes the Python object for a result. Throws UserError(Unsupported) if the graph has too many
// nodes.
PyValue to_value(const PyGraph& g, const graph::numpy::Operand& x);
// The value of a NumPy scalar.
PyValue constant(PyGraph& g, const py::object& x);

void bind_values(py::module_& m);

}  // namespace rune::bindings

// The type's name in signatures, from which the stub is made. It is `object`, because the stub
// generator cannot see the attributes of plain types.
template <>
struct pybind11::detail::handle_type_name<rune::bindings::PyValue> {
  static constexpr auto name = const_name("object");
};
