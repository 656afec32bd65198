// Segments of graphs under construction (graph/segment.h), as Python has them.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "bindings/bindings.h"
#include "bindings/graph_builder.h"
#include "bindings/value.h"
#include "graph/segment_sizes.h"

namespace rune::bindings {

namespace {

// A segment of a graph under construction, which must live as long.
struct PySegment {
  std::shared_ptr<const PyGraph> graph;
  graph::Segment segment;

  Scalar constant(size_t i) const {
    return graph->graph()[segment.constants.at(i)].as<graph::Const_Scalar>()->value;
  }
  // All constants, 16 bytes each.
  py::bytes constants() const {
    std::string bytes(segment.constants.size() * 16, '\0');
    for (size_t i = 0; i < segment.constants.size(); ++i) constant(i).store(&bytes[i * 16]);
    return bytes;
  }
  py::array constant_array(size_t i) const {
    const Scalar value = constant(i);
    py::array array(to_numpy(value.dtype()), std::vector<ssize_t>{});
    value.store(array.mutable_data());
    return array;
  }
};

// The segment has run: its outputs are in memory.
void mark_stored(PyGraph& g, const PySegment& segment) {
  for (const graph::Value v : segment.segment.outputs) g.make_argument(v);
}

PySegment cut(const std::shared_ptr<PyGraph>& g, const std::vector<PyValue>& wanted,
              const py::dict& in_memory) {
  RUNE_CHECK(g->uses, "a graph whose live values are not counted");
  std::vector<graph::Value> values, live;
  for (const PyValue& v : wanted) values.push_back(v.operand().value);
  for (const auto& [id, count] : *g->uses) live.push_back({id});
  graph::ValueSet stored;
  for (const auto& item : in_memory) stored.insert(item.first.cast<uint32_t>());
  return {g, graph::cut_segment(g->graph(), values, live, stored)};
}

}  // namespace

void bind_segments(py::module_& m) {
  py::class_<graph::SegmentSizes>(m, "SegmentSizes",
                                  "The sizes of segments of one pattern, some of them symbolic.")
      .def(
          "values_for",
          [](const graph::SegmentSizes& sizes, const Ints& of_segment) {
            std::optional<std::map<std::string, int64_t>> result;
            if (const std::optional<Ints> values = sizes.values_for(of_segment)) {
              result.emplace();
              for (size_t i = 0; i < values->size(); ++i)
                result->emplace(sizes.vars[i].name, (*values)[i]);
            }
            return result;
          },
          py::arg("of_segment"),
          "By name, what the symbolic sizes are in a segment of these sizes; None if it is none "
          "that they describe.");
  py::class_<PySegment>(m, "Segment",
                        "A part of a graph under construction that runs before the rest.")
      .def_property_readonly("inputs", [](const PySegment& s) { return ids_of(s.segment.inputs); })
      .def_property_readonly("outputs",
                             [](const PySegment& s) { return ids_of(s.segment.outputs); })
      .def_property_readonly("held", [](const PySegment& s) { return ids_of(s.segment.held); })
      .def_property_readonly(
          "pattern", [](const PySegment& s) { return s.segment.pattern; },
          "Segments of one pattern differ in sizes and constants only.")
      .def_property_readonly(
          "sizes", [](const PySegment& s) { return py::tuple(py::cast(s.segment.sizes)); },
          "All sizes in the segment.")
      .def(
          "symbolic_sizes",
          [](const PySegment& s, const std::vector<Ints>& seen) {
            return graph::symbolic_sizes(s.graph->graph(), s.segment, seen);
          },
          py::arg("seen"),
          "The SegmentSizes for segments of this pattern, given the sizes of those that have been "
          "seen, of which this is the last. Raises an error that names a size which cannot be "
          "symbolic.")
      .def_property_readonly(
          "numpy_ns", [](const PySegment& s) { return s.segment.numpy_ns; },
          "An estimate of NumPy's time for it.")
      .def_property_readonly(
          "compile_ns", [](const PySegment& s) { return s.segment.compile_ns; },
          "A rough estimate of the time that compiling it takes.")
      .def_property_readonly("constants", &PySegment::constants, "The constants, 16 bytes each.")
      .def("constant", &PySegment::constant_array, py::arg("i"), "A constant as a 0-d array.")
      .def("__len__", [](const PySegment& s) { return s.segment.nodes.size(); })
      .def(
          "graph",
          [](const PySegment& s, const std::vector<int64_t>& arguments,
             const graph::SegmentSizes* sizes) {
            const graph::Graph& g = s.graph->graph();
            return std::make_shared<graph::Graph>(
                sizes ? graph::program_of(g, s.segment, arguments, *sizes)
                      : graph::program_of(g, s.segment, arguments));
          },
          py::arg("arguments"), py::arg("sizes") = nullptr,
          "The program, whose arguments are the inputs, then the constants at these positions.");
  m.def("mark_stored", &mark_stored, py::arg("builder"), py::arg("segment"),
        "Makes the outputs of a segment, which has run, arguments of later ones.");
  m.def("cut_segment", &cut, py::arg("builder"), py::arg("wanted"), py::arg("in_memory"),
        "The Segment that computes these values, and what all Values that Python holds are read "
        "from; the keys of `in_memory` are the ids of values that are in memory. The builder must "
        "have been made with counts_uses.");
}

}  // namespace rune::bindings
