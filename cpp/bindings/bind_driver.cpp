// Binds the pipeline: lowering, the text of each stage, costs, and compilation.
#include <algorithm>

#include "base/error.h"
#include "bindings/lowered.h"
#include "bindings/program.h"
#include "driver/compile.h"
#include "driver/explain.h"
#include "graph/text.h"
#include "lower/text.h"
#include "lower/verify.h"
#include "runtime/thread_pool.h"
#include "schedule/text.h"

namespace rune::bindings {

namespace {

// A Python callable that takes read-only arrays and returns a sequence of arrays, all results of a
// call. If it has a method `fill`, that is called instead. Its arguments are a dict of the arrays
// that it must fill, by the number of the result, followed by the operands.
class PythonFunction {
 public:
  PythonFunction(std::string name, const py::object& function)
      : name_(std::move(name)),
        fills_(py::hasattr(function, "fill")),
        function_(new py::object(fills_ ? function.attr("fill") : function), [](py::object* f) {
          const py::gil_scoped_acquire acquire;
          delete f;
        }) {}

  void operator()(std::span<const driver::HostArray> operands,
                  std::span<const driver::HostArray> results) const {
    const py::gil_scoped_acquire acquire;
    py::tuple arguments(operands.size() + fills_);
    for (size_t i = 0; i < operands.size(); ++i) {
      py::array array = view(operands[i]);
      array.attr("flags").attr("writeable") = false;
      arguments[i + fills_] = std::move(array);
    }
    if (fills_) {
      py::dict filled;
      for (const driver::HostArray& result : results)
        filled[py::int_(result.number)] = view(result);
      arguments[0] = std::move(filled);
      (*function_)(*arguments);
      return;
    }
    const py::object returned = (*function_)(*arguments);
    for (const driver::HostArray& result : results) {
      const py::array array = py::array::ensure(returned[py::int_(result.number)]);
      const ArrayHeader header = header_of(array);
      if (header.dtype != result.dtype || !std::equal(result.shape.begin(), result.shape.end(),
                                                      header.shape, header.shape + header.rank))
        user_error(ErrorKind::Value, name_, ": cannot store ", std::string(py::str(array.dtype())),
                   std::string(py::str(array.attr("shape"))), " as ", numpy_name(result.dtype),
                   shape_text(result.shape), " (result ", result.number,
                   " differs from what the trace found)");
      view(result).attr("__setitem__")(py::ellipsis(), array);
    }
  }

 private:
  // The array is valid until the call returns.
  static py::array view(const driver::HostArray& array) {
    return make_ndarray({array.dtype, array.shape}, to_numpy(array.dtype), array.memory,
                        py::none());
  }

  std::string name_;
  bool fills_;
  std::shared_ptr<py::object> function_;
};

std::vector<driver::HostFunction> to_functions(const py::sequence& pairs) {
  std::vector<driver::HostFunction> functions;
  for (const py::handle pair : pairs) {
    const auto items = py::reinterpret_borrow<py::sequence>(pair);
    functions.push_back(PythonFunction(items[0].cast<std::string>(), items[1]));
  }
  return functions;
}

// Calls function(i) for each i < count, on several cores if `estimated_ns` makes that worthwhile.
void call_side_by_side(const py::function& function, int64_t count, double estimated_ns) {
  const py::gil_scoped_release release;
  runtime::parallel_for(count, estimated_ns, [&](int64_t begin, int64_t end) {
    const py::gil_scoped_acquire acquire;
    for (int64_t i = begin; i < end; ++i) function(i);
  });
}

SizedType type_of(const graph::Graph& g, graph::Value v) {
  return {g[v].dtype(), g[v].shape()};
}

// Checks that the device has the inputs' dtypes. Errors have the user's names of the inputs, which
// the driver does not know.
void check_dtypes(const graph::Graph& g, const std::string& device,
                  const std::vector<std::string>& names) {
  const Capabilities& caps = driver::find_target(device).capabilities();
  const std::vector<graph::Value> inputs = g.inputs();
  for (size_t i = 0; i < std::min(inputs.size(), names.size()); ++i) {
    const graph::Node& node = g[inputs[i]];
    if (!caps.has_dtype(node.dtype()))
      user_error(ErrorKind::DType, "jit: cannot hold ", names[i], " of dtype ",
                 numpy_name(node.dtype()), " and shape ", shape_text(node.shape()), " on ", device,
                 "\nhint: pass it as a dtype that the device has, or use device=\"cpu\"");
  }
}

PyLowered lower(const graph::Graph& g, const std::string& device,
                const std::vector<std::string>& names, const py::sequence& functions,
                const std::string& name) {
  check_dtypes(g, device, names);
  PyLowered result;
  result.functions = to_functions(functions);
  for (const graph::Value v : g.inputs()) result.inputs.push_back(type_of(g, v));
  for (const graph::Value v : g.outputs) result.outputs.push_back(type_of(g, v));
  const py::gil_scoped_release release;
  result.device = device;
  result.lowered = driver::lower(g, device);
  result.lowered.name = name;
  return result;
}

std::shared_ptr<BoundProgram> compile(const PyLowered& l) {
  std::shared_ptr<const runtime::Executable> executable;
  {
    const py::gil_scoped_release release;
    executable = driver::compile(l.lowered, l.device, l.functions);
  }
  return std::make_shared<BoundProgram>(std::move(executable), l.inputs, l.outputs,
                                        l.lowered.schedule.graph.symbolic_vars());
}

std::shared_ptr<BoundProgram> compile_kernel(const std::string& text, const std::string& device) {
  const lower::Kernel kernel = lower::parse(text);
  const std::vector<std::string> violations = lower::verify(kernel);
  if (!violations.empty())
    user_error(ErrorKind::Value, "kernel: cannot compile ", kernel.name, " (", violations[0], ")");
  std::vector<SizedType> inputs, outputs;
  for (const lower::Var v : kernel.globals()) {
    const auto& global = *kernel[v].as<lower::Define_Global>();
    inputs.push_back({kernel[v].type.dtype, Shape{global.size}});
    if (global.writable) outputs.push_back(inputs.back());
  }
  std::vector<SymVar> vars;
  for (const lower::Instr& instr : kernel.body)
    if (const auto* define = instr.as<lower::Define_Var>())
      if (!contains(vars, define->var)) vars.push_back(define->var);
  vars.resize(vars.size() - std::min(vars.size(), kernel.arguments.size()));
  std::shared_ptr<const runtime::Executable> executable;
  {
    const py::gil_scoped_release release;
    executable = driver::compile_kernel(kernel, device);
  }
  return std::make_shared<BoundProgram>(std::move(executable), std::move(inputs),
                                        std::move(outputs), std::move(vars));
}

std::vector<std::string> instruction_kinds() {
  std::vector<std::string> names;
  for (int kind = 0; kind < lower::kNumInstrKinds; ++kind)
    names.push_back(lower::name_of(static_cast<lower::InstrKind>(kind)));
  return names;
}

}  // namespace

void bind_driver(py::module_& m) {
  py::class_<PyLowered, std::shared_ptr<PyLowered>> lowered(m, "Lowered",
                                                            "A program lowered for a device.");
  bind_description(lowered);
  lowered
      .def_property_readonly(
          "graph", [](const PyLowered& l) { return graph::print(l.lowered.schedule.graph); },
          "Text of the graph after the graph passes.")
      .def_property_readonly(
          "schedule", [](const PyLowered& l) { return schedule::print(l.lowered.schedule); },
          "Text of the Scheduled IR.")
      .def_property_readonly(
          "kernels",
          [](const PyLowered& l) {
            std::vector<std::string> texts;
            for (const lower::Kernel& kernel : driver::launched_kernels(l.lowered))
              texts.push_back(lower::print(kernel));
            return texts;
          },
          "Text of the Lowered IR, one for each launch.")
      .def_readonly("device", &PyLowered::device)
      .def(
          "source",
          [](const PyLowered& l, const std::optional<std::string>& target) {
            const py::gil_scoped_release release;
            return driver::source(l.lowered, target.value_or(l.lowered.target->name));
          },
          py::arg("target") = py::none(), "The kernels' source for a target.")
      .def("cost_analysis", [](const PyLowered& l) { return driver::cost_analysis(l.lowered); })
      .def("explain", [](const PyLowered& l) { return driver::explain(l.lowered); })
      .def("compile", &compile);
  m.def("lower", &lower, py::arg("graph"), py::arg("device"),
        py::arg("names") = std::vector<std::string>{}, py::arg("functions") = py::tuple(),
        py::arg("name") = "",
        "Runs the pipeline up to the Lowered IR for a device. Errors use the inputs' names. "
        "`functions` has a (name, callable) for each host call, in order. The callable takes "
        "read-only arrays and returns a sequence of arrays. Or it has a method `fill`, which takes "
        "a dict of the arrays that it fills, by the number of the result, followed by the "
        "read-only arrays. `name` is the program's name in profiles.");
  m.def("call_side_by_side", &call_side_by_side, py::arg("function"), py::arg("count"),
        py::arg("estimated_ns"),
        "Calls function(i) for each i < count, on several cores if the estimated time of all calls "
        "on one core makes that worthwhile.");
  m.def("compile_kernel", &compile_kernel, py::arg("text"), py::arg("device"),
        "The program of one kernel of the Lowered IR.");
  m.def("instruction_kinds", &instruction_kinds, "Names of the instructions of the Lowered IR.");
  m.def("targets", &driver::target_names, "Names of the targets that programs can be lowered for.");
}

}  // namespace rune::bindings
