// Binds segments of graphs under construction (graph/segment.h).
#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "bindings/bindings.h"
#include "bindings/graph_builder.h"
#include "bindings/program.h"
#include "bindings/value.h"
#include "graph/segment_sizes.h"

namespace rune::bindings {

namespace {

// A segment of a graph under construction, which it keeps alive.
struct PySegment {
  std::shared_ptr<const PyGraph> graph;
  graph::Segment segment;

  Scalar constant(size_t i) const {
    return graph->graph()[segment.constants.at(i)].as<graph::Const_Scalar>()->value;
  }
  // The bytes of all constants, kConstant bytes for each.
  std::string constants() const {
    std::string bytes(segment.constants.size() * kConstant, '\0');
    for (size_t i = 0; i < segment.constants.size(); ++i) constant(i).store(&bytes[i * kConstant]);
    return bytes;
  }
  static constexpr size_t kConstant = 16;
  py::array constant_array(size_t i) const {
    const Scalar value = constant(i);
    py::array array(to_numpy(value.dtype()), std::vector<ssize_t>{});
    value.store(array.mutable_data());
    return array;
  }
};

// Notes that the segment has run, so that its outputs are in memory.
void mark_stored(PyGraph& g, const PySegment& segment) {
  for (const graph::Value v : segment.segment.outputs) g.make_argument(v);
}

uint32_t id_of(py::handle key) {
  return static_cast<uint32_t>(PyLong_AsUnsignedLong(key.ptr()));
}

PySegment cut(const std::shared_ptr<PyGraph>& g, const std::vector<PyValue>& wanted,
              const py::dict& in_memory) {
  RUNE_CHECK(g->uses, "a graph whose live values are not counted");
  std::vector<graph::Value> values, live;
  for (const PyValue& v : wanted) {
    values.push_back(v.operand().value);
    RUNE_CHECK(values.back().id < g->graph().size(), "a value of another graph");
  }
  for (const auto& [id, count] : *g->uses) live.push_back({id});
  graph::ValueSet stored;
  for (const auto& item : in_memory) stored.insert(id_of(item.first));
  return {g, graph::cut_segment(g->graph(), values, live, stored)};
}

// The compiled programs of segments, by pattern and sizes. Most segments of a trace are found here.
class KnownSegments {
 public:
  // Adds a program for segments with this one's pattern, sizes and constants. The constants at the
  // positions `arguments` are arguments of the program and may differ. Replaces an earlier program
  // for the same pattern and sizes.
  void add(const PySegment& segment, std::shared_ptr<const BoundProgram> program, Ints arguments) {
    std::vector<Known>& known = known_[segment.segment.pattern];
    std::erase_if(known, [&](const Known& k) { return k.sizes == segment.segment.sizes; });
    known.push_back(
        {segment.segment.sizes, segment.constants(), std::move(arguments), std::move(program)});
  }

  // Cuts a segment. If its program is known, runs it and returns the wanted values as NumPy
  // objects; `in_memory` then has the values that later segments may read. Otherwise returns the
  // PySegment.
  py::object run(const std::shared_ptr<PyGraph>& g, const std::vector<PyValue>& wanted,
                 py::dict& in_memory) {
    PySegment cut_out = cut(g, wanted, in_memory);
    const graph::Segment& segment = cut_out.segment;
    if (!segment.outputs.empty()) {
      if (!run(cut_out, in_memory)) return py::cast(std::move(cut_out));
      mark_stored(*g, cut_out);
    }
    py::list found(wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i)
      found[i] = in_memory[py::int_(wanted[i].operand().value.id)];
    std::vector<py::object> unused;
    graph::ValueSet held;
    for (const graph::Value v : segment.held) held.insert(v.id);
    for (const auto& item : in_memory)
      if (!held.contains(id_of(item.first)))
        unused.push_back(py::reinterpret_borrow<py::object>(item.first));
    for (const py::object& id : unused)
      if (PyDict_DelItem(in_memory.ptr(), id.ptr()) != 0) throw py::error_already_set();
    return found;
  }

  double numpy_ns = 0;  // NumPy's estimated time for all segments that have run

 private:
  struct Known {
    Ints sizes;
    std::string constants;
    Ints arguments;
    std::shared_ptr<const BoundProgram> program;

    bool takes(const PySegment& segment) const {
      if (sizes != segment.segment.sizes) return false;
      constexpr size_t n = PySegment::kConstant;
      const std::string now = segment.constants();
      for (size_t i = 0; i * n < now.size(); ++i)
        if (std::memcmp(&now[i * n], &constants[i * n], n) != 0 &&
            std::ranges::find(arguments, static_cast<int64_t>(i)) == arguments.end())
          return false;
      return true;
    }
  };

  bool run(const PySegment& segment, py::dict& in_memory) {
    const auto found = known_.find(segment.segment.pattern);
    if (found == known_.end()) return false;
    const auto known =
        std::ranges::find_if(found->second, [&](const Known& k) { return k.takes(segment); });
    if (known == found->second.end()) return false;
    std::vector<py::object> arguments;
    for (const graph::Value v : segment.segment.inputs)
      arguments.push_back(in_memory[py::int_(v.id)]);
    for (const int64_t i : known->arguments) arguments.push_back(segment.constant_array(i));
    // Another thread may add programs while this one runs.
    const std::shared_ptr<const BoundProgram> program = known->program;
    numpy_ns += segment.segment.numpy_ns;
    const std::vector<py::handle> handles(arguments.begin(), arguments.end());
    const std::vector<py::object> results = program->run(handles);
    for (size_t i = 0; i < results.size(); ++i)
      in_memory[py::int_(segment.segment.outputs[i].id)] = to_numpy_result(results[i]);
    return true;
  }

  std::unordered_map<std::string, std::vector<Known>> known_;  // by pattern
};

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
          "The values of the symbolic sizes, by name, for a segment of these sizes. None if they "
          "do not fit the segment.");
  py::class_<PySegment>(m, "Segment",
                        "A part of a graph under construction that runs before the rest.")
      .def_property_readonly("inputs", [](const PySegment& s) { return ids_of(s.segment.inputs); })
      .def_property_readonly("outputs",
                             [](const PySegment& s) { return ids_of(s.segment.outputs); })
      .def_property_readonly("held", [](const PySegment& s) { return ids_of(s.segment.held); })
      .def_property_readonly(
          "pattern", [](const PySegment& s) { return s.segment.pattern; },
          "Segments of the same pattern differ only in sizes and constants.")
      .def_property_readonly(
          "sizes", [](const PySegment& s) { return py::tuple(py::cast(s.segment.sizes)); },
          "All sizes in the segment.")
      .def(
          "symbolic_sizes",
          [](const PySegment& s, const std::vector<Ints>& seen) {
            return graph::symbolic_sizes(s.graph->graph(), s.segment, seen);
          },
          py::arg("seen"),
          "The SegmentSizes for segments of this pattern, from the sizes of the segments seen so "
          "far. This is the last of them. Raises an error that names a size which cannot be "
          "symbolic.")
      .def_property_readonly(
          "numpy_ns", [](const PySegment& s) { return s.segment.numpy_ns; },
          "An estimate of NumPy's time for it.")
      .def_property_readonly(
          "compile_ns", [](const PySegment& s) { return s.segment.compile_ns; },
          "A rough estimate of the time that compiling it takes.")
      .def_property_readonly(
          "stored", [](const PySegment& s) { return s.segment.stored; },
          "The number of elements that it stores. (NumPy may write a part of them only.)")
      .def_property_readonly(
          "constants", [](const PySegment& s) { return py::bytes(s.constants()); },
          "The constants, 16 bytes each.")
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
          "The graph of the segment. Its arguments are the inputs, followed by the constants at "
          "these positions.");
  m.def("mark_stored", &mark_stored, py::arg("builder"), py::arg("segment"),
        "Makes the outputs of a segment, which has run, arguments of later ones.");
  py::class_<KnownSegments>(m, "KnownSegments",
                            "The compiled programs of segments whose sizes are known.")
      .def(py::init<>())
      .def("add", &KnownSegments::add, py::arg("segment"), py::arg("program"), py::arg("arguments"),
           "Adds the Executable of a segment. The constants at these positions are arguments of "
           "it. It replaces an Executable for the same pattern and sizes.")
      .def("run",
           py::overload_cast<const std::shared_ptr<PyGraph>&, const std::vector<PyValue>&,
                             py::dict&>(&KnownSegments::run),
           py::arg("builder"), py::arg("wanted"), py::arg("in_memory"),
           "Cuts the Segment that computes these values and the values from which all Values that "
           "Python holds are read. The keys of `in_memory` are the ids of values that are in "
           "memory. If the Segment's program is known, runs it and returns a list of the wanted "
           "values' elements; `in_memory` then has the values that later segments may read. "
           "Otherwise returns the Segment. The builder must have been made with counts_uses.")
      .def_readonly("numpy_ns", &KnownSegments::numpy_ns,
                    "An estimate of NumPy's time for all segments that have run.");
}

}  // namespace rune::bindings
