// Binds the partition of programs into programs of blocks, for arrays in chunks.
#include "bindings/bindings.h"
#include "driver/cut.h"
#include "graph/text.h"

namespace rune::bindings {

namespace {

py::object optional_name(const std::optional<ReduceOp>& op) {
  return op ? py::object(py::str(name_of(*op))) : py::none();
}

py::tuple box_of(const partition::Box& box) {
  py::tuple result(box.size());
  for (size_t i = 0; i < box.size(); ++i) result[i] = py::make_tuple(box[i].first, box[i].second);
  return result;
}

py::list arrays_of(const partition::Plan& plan) {
  py::list result;
  for (const partition::Array& array : plan.arrays) {
    const bool is_argument = array.kind == partition::Array::Kind::Argument;
    result.append(py::make_tuple(is_argument ? py::object(py::int_(array.number)) : py::none(),
                                 to_numpy(array.dtype), py::cast(array.chunks)));
  }
  return result;
}

py::list programs_of(const partition::Plan& plan) {
  py::list result;
  for (const graph::Graph& program : plan.programs) result.append(graph::print(program));
  return result;
}

py::list passes_of(const partition::Plan& plan) {
  py::list result;
  for (const partition::Pass& pass : plan.passes) {
    py::list results, blocks;
    for (const partition::Result& r : pass.results)
      results.append(py::make_tuple(r.array, r.grid_axes, optional_name(r.combine), r.reduced));
    for (size_t i = 0; i < pass.operands.size(); ++i) {
      py::list operands;
      for (const partition::Operand& operand : pass.operands[i])
        operands.append(py::make_tuple(operand.array, box_of(operand.box)));
      const py::object program = pass.call ? py::object(py::none()) : py::int_(pass.programs[i]);
      blocks.append(py::make_tuple(program, std::move(operands)));
    }
    py::object call = py::none();
    if (pass.call) call = py::make_tuple(pass.call->name, pass.call->number, pass.call->results);
    result.append(py::make_tuple(pass.level, pass.grid, std::move(results), std::move(blocks),
                                 std::move(call)));
  }
  return result;
}

}  // namespace

void bind_partition(py::module_& m) {
  py::class_<partition::Plan>(
      m, "Plan", "A program that has been cut: programs of blocks, and the passes that run them.")
      .def("__str__", [](const partition::Plan& plan) { return partition::print(plan); })
      .def_readonly("outputs", &partition::Plan::outputs, "The arrays that are the outputs.")
      .def_property_readonly("arrays", &arrays_of,
                             "(index of the argument or None, dtype, chunks by axis) of each.")
      .def_property_readonly("programs", &programs_of, "Texts of graphs.")
      .def_property_readonly(
          "passes", &passes_of,
          "(level, grid, results, blocks, call) of each pass. The grid has the chunks of its axes. "
          "A result is (array, for each axis the axis of the grid or -1, the operation that "
          "combines partial results or None, the axes of the grid along which they are combined). "
          "A block, in row-major order, is (program, [(array, box)]). The call is None or (name, "
          "number, numbers of the function's results); programs are None if there is a call.");
  m.def(
      "cut",
      [](const graph::Graph& graph, const std::string& device,
         const std::vector<partition::Chunks>& chunks) {
        const py::gil_scoped_release release;
        return driver::cut(graph, device, chunks);
      },
      py::arg("graph"), py::arg("device"), py::arg("chunks"),
      "Cuts a graph into programs of blocks. `chunks` has the sizes of the chunks by argument and "
      "axis; no chunk may be empty. Raises UnsupportedOpError if the graph cannot be cut.");
}

}  // namespace rune::bindings
