// Binds the construction of graphs node by node: every kind of node, with its attributes as in the
// graph's text.
#include "base/error.h"
#include "bindings/bindings.h"
#include "graph/builder.h"
#include "graph/text.h"

namespace rune::bindings {

namespace {

// The variables that the graph's nodes declare.
std::vector<SymVar> variables(const graph::Graph& graph) {
  std::vector<SymVar> result;
  for (const graph::Node& node : graph.nodes)
    if (const SymVar* variable = graph::declared_variable(node)) result.push_back(*variable);
  return result;
}

std::vector<std::string> node_kinds() {
  std::vector<std::string> names;
  for (int kind = 0; kind < graph::kNumNodeKinds; ++kind)
    names.push_back(graph::name_of(static_cast<graph::NodeKind>(kind)));
  return names;
}

uint32_t add(graph::Builder& b, const std::string& operation, const std::vector<uint32_t>& operands,
             const py::object& dtype, const py::sequence& shape) {
  std::vector<graph::Value> inputs;
  for (const uint32_t id : operands) {
    if (id >= b.size())
      user_error(ErrorKind::Value, "node: cannot use %", id, " (there are ", b.size(), " nodes)");
    inputs.push_back({id});
  }
  graph::Metadata declared;
  if (!dtype.is_none()) declared.dtype = to_dtype(dtype);
  declared.shape = to_shape(shape);
  return b.add(graph::parse_payload(operation, variables(b.graph())), std::move(inputs), declared)
      .id;
}

std::shared_ptr<graph::Graph> finish(graph::Builder& b, const std::vector<uint32_t>& outputs) {
  std::vector<graph::Value> values;
  for (const uint32_t id : outputs) {
    if (id >= b.size())
      user_error(ErrorKind::Value, "finish: cannot return %", id, " (there are ", b.size(),
                 " nodes)");
    values.push_back({id});
  }
  b.set_outputs(std::move(values));
  return std::make_shared<graph::Graph>(b.graph());
}

}  // namespace

void bind_ir(py::module_& m) {
  m.def("node_kinds", &node_kinds, "Names of the node kinds of graphs.");
  py::class_<graph::Builder>(m, "NodeBuilder", "A graph under construction, node by node.")
      .def(py::init<>())
      .def(
          "add", &add, py::arg("operation"), py::arg("operands"), py::arg("dtype") = py::none(),
          py::arg("shape") = py::tuple(),
          "Appends a node and returns its number. `operation` is its kind and attributes as in the "
          "graph's text.")
      .def(
          "type_of",
          [](const graph::Builder& b, uint32_t id) {
            const graph::Node& node = b.graph().nodes.at(id);
            return py::make_tuple(to_numpy(node.dtype()), to_python(node.shape()));
          },
          "The (dtype, shape) of a node.")
      .def(
          "size",
          [](const graph::Builder& b, uint32_t id) {
            const SymVar* variable = graph::declared_variable(b.graph().nodes.at(id));
            RUNE_CHECK(variable, "%", id, " declares no variable");
            return to_python(Dim(*variable));
          },
          py::arg("number"), "The size that is the value of a define_var or loop_counter.")
      .def("finish", &finish, py::arg("outputs"), "The graph with these nodes as outputs.");
}

}  // namespace rune::bindings
