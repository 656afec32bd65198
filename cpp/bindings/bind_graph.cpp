// Binds graphs under construction: GraphBuilder, whose methods are NumPy's functions, and Value.
#include <algorithm>

#include "base/error.h"
#include "bindings/bindings.h"
#include "bindings/graph_arguments.h"
#include "bindings/graph_builder.h"
#include "bindings/value.h"
#include "graph/numpy/complex.h"
#include "graph/numpy/index_bounds.h"
#include "graph/numpy/indexing.h"
#include "graph/numpy/integer_ranges.h"
#include "graph/numpy/loops.h"
#include "graph/numpy/movement.h"
#include "graph/numpy/reductions.h"
#include "graph/numpy/ufuncs.h"
#include "graph/text.h"
#include "graph/verify.h"

namespace rune::bindings {

using graph::numpy::IndexItems;
using graph::numpy::Operand;
using graph::numpy::Operands;

namespace {

// The numbers of the inputs from which a value is computed. Nothing if it depends on a dynamic
// size.
std::optional<std::vector<int64_t>> inputs_behind(const PyGraph& g, const PyValue& value) {
  const graph::Graph& graph = g.graph();
  std::vector<bool> is_needed(value.operand().value.id + 1, false);
  is_needed.back() = true;
  std::vector<int64_t> inputs;
  for (size_t i = is_needed.size(); i-- > 0;) {
    if (!is_needed[i]) continue;
    const graph::Node& node = graph.nodes[i];
    if (graph::declared_variable(node)) return std::nullopt;
    if (const auto* input = node.as<graph::Placeholder>()) inputs.push_back(input->index);
    for (const graph::Value v : node.inputs) is_needed[v.id] = true;
  }
  return inputs;
}

// Conversions of results to Python objects.
PyValue wrap(const PyGraph& g, const Operand& x) {
  return to_value(g, x);
}

std::vector<PyValue> wrap(const PyGraph& g, const Operands& xs) {
  std::vector<PyValue> result;
  for (const Operand& x : xs) result.push_back(wrap(g, x));
  return result;
}

py::object wrap(const PyGraph&, std::optional<int64_t> number) {
  return py::cast(number);
}

py::object wrap(const PyGraph& g, const Dim& size) {
  return to_python(size, g.trace);
}

py::tuple wrap(const PyGraph& g, const Shape& shape) {
  return to_python(shape, g.trace);
}

py::dtype wrap(const PyGraph&, DType dtype) {
  return to_numpy(dtype);
}

bool wrap(const PyGraph&, bool value) {
  return value;
}

template <class Enum>
Enum by_name(const std::string& name) {
  text::Lexer lexer(name);
  return text::Codec<Enum>::parse(lexer);
}

// The type in which Python passes an argument of a C++ type: the same, or one to convert from.
template <class T>
struct Argument {
  using Python = T;
  static T from(const PyGraph&, T given) { return given; }
};
template <class T, class Given, auto convert>
struct Converted {
  using Python = Given;
  static T from(const PyGraph& g, const Given& given) {
    if constexpr (std::is_invocable_v<decltype(convert), const PyGraph&, const Given&>)
      return convert(g, given);
    else
      return convert(given);
  }
};
template <class T, class Given, auto convert>
struct Optional {
  using Python = Given;
  static std::optional<T> from(const PyGraph&, const Given& given) {
    return given.is_none() ? std::nullopt : std::optional<T>(convert(given));
  }
};
template <>
struct Argument<std::string_view>
    : Converted<std::string_view, std::string,
                [](const std::string& s) { return std::string_view(s); }> {};
template <>
struct Argument<Operand> : Converted<Operand, py::handle, to_operand> {};
template <>
struct Argument<std::optional<Operand>> : Optional<Operand, py::handle, to_operand> {};
template <>
struct Argument<Operands> : Converted<Operands, py::sequence, to_operands> {};
template <>
struct Argument<DType> : Converted<DType, py::object, to_dtype> {};
template <>
struct Argument<std::optional<DType>> : Optional<DType, py::object, to_dtype> {};
template <>
struct Argument<std::optional<Kind>> : Optional<Kind, py::object, weak_kind> {};
template <>
struct Argument<Dim> : Converted<Dim, py::handle, [](const PyGraph& g, py::handle size) {
  return to_dim(size, g.trace);
}> {};
template <>
struct Argument<Shape>
    : Converted<Shape, py::sequence, [](const PyGraph& g, const py::sequence& sizes) {
      return to_shape(sizes, g.trace);
    }> {};
template <>
struct Argument<graph::DimPairs> : Converted<graph::DimPairs, py::sequence, to_dim_pairs> {};
template <>
struct Argument<IndexItems> : Converted<IndexItems, py::sequence, to_index> {};
template <>
struct Argument<ReduceOp> : Converted<ReduceOp, std::string, by_name<ReduceOp>> {};
template <>
struct Argument<graph::ScatterMode>
    : Converted<graph::ScatterMode, std::string, by_name<graph::ScatterMode>> {};

using Class = py::class_<PyGraph, std::shared_ptr<PyGraph>>;

// Binds a function on graphs under construction as a method.
template <class Result, class Graph, class... Args, class... Extra>
void def(Class& c, const char* name, Result (*function)(Graph&, Args...), const Extra&... extra) {
  c.def(
      name,
      [function](PyGraph& g, typename Argument<std::decay_t<Args>>::Python... given) {
        const auto call = [&] {
          return function(g, Argument<std::decay_t<Args>>::from(g, given)...);
        };
        if constexpr (std::is_void_v<Result>)
          call();
        else
          return wrap(g, call());
      },
      extra...);
}

void bind_functions(Class& c) {
  using namespace graph::numpy;
  const auto no_dtype = py::arg("dtype") = py::none();
  def(c, "input", &input, py::arg("dtype"), py::arg("shape"), py::arg("weak") = py::none());
  def(c, "define_size", &define_size, py::arg("name"), py::arg("low"), py::arg("high"),
      "A size that is known when the program runs.");
  def(c, "begin_loop", &begin_loop, py::arg("low"), py::arg("high"),
      "Begins a loop and returns its counter: a Size whose values are between `low` and `high`, "
      "which must differ.");
  def(c, "carry", &carry, py::arg("counter"), py::arg("index"), py::arg("value"),
      "Carried value number `index` of the loop, at the start of an iteration. `value` is its "
      "initial value.");
  def(c, "end_loop", &end_loop, py::arg("counter"), py::arg("start"), py::arg("stop"),
      py::arg("step"), py::arg("values"), py::arg("initial"), py::arg("goes_on") = py::none(),
      py::arg("keeps_checks") = true,
      "Ends the loop whose counter has the values of range(start, stop, step). `values` are the "
      "carried values, by index, at the end of an iteration. Returns their values after the last "
      "iteration, or the initial values if there is none. If `goes_on` is given, value number "
      "`goes_on` is a 0-d bool, and the loop ends before an iteration if it is false. Raises "
      "ValueError if a shape changes, TypeError if a dtype does. With `keeps_checks`, the checks "
      "in the body are kept.");
  def(c, "depends_on_counter", &depends_on_counter, py::arg("counter"), py::arg("value"),
      "Whether a value may differ from iteration to iteration of an open loop.");
  def(c, "depends_on_carried", &depends_on_carried, py::arg("counter"), py::arg("value"),
      "Whether a value may depend on the carried values of an open loop.");
  def(c, "largest_operation", &largest_operation, py::arg("counter"),
      "The number of operations of the largest node that has been made since the loop began.");
  def(c, "give_up_loop", &give_up_loop,
      "Ends the innermost loop without a result: nobody uses its values.");
  def(c, "bind_position", &bind_position, py::arg("at"), py::arg("axis"), py::arg("size"),
      "The position x[at] along an axis, as a Size in the body of the innermost loop. If the axis "
      "has no such position, the call raises IndexError, which names the axis `axis`.");
  def(c, "bind_slice", &bind_slice, py::arg("start"), py::arg("stop"), py::arg("size"),
      "The first position and the number of the elements x[start:stop] along an axis, as Sizes in "
      "the body of the innermost loop.");
  def(c, "constant_difference", &constant_difference, py::arg("a"), py::arg("b"),
      "b - a, if both are the same integer plus constants; otherwise None.");
  def(c, "bind_number", &bind_number, py::arg("value"), py::arg("low"), py::arg("high"),
      "A number that is known to lie within bounds, as a Size in the body of the innermost loop.");
  def(c, "bind_bound", &bind_bound, py::arg("value"),
      "The bound of a range, as a Size in the body of the innermost loop.");
  def(c, "python_number", &python_number, py::arg("value"), py::arg("to_int"),
      "int() or float() of a 0-d value. int() of a 64-bit value assumes that its magnitude is at "
      "most 2^31.");
  c.def(
      "mark_unsure",
      [](PyGraph& g, const PyValue& value, const py::object& kind, const PyValue& is_python) {
        mark_unsure(g, value.operand(), *weak_kind(kind), is_python.operand());
      },
      py::arg("value"), py::arg("kind"), py::arg("is_python"),
      "Notes that a 0-d value stands for a Python number of this kind where a 0-d bool is true.");
  def(c, "is_python", &is_python, py::arg("value"), "Whether a number is Python's, as a 0-d bool.");
  c.def(
      "unsure_kind",
      [](const PyGraph& g, const PyValue& value) -> std::optional<std::string> {
        const std::optional<Kind> kind = unsure_kind(g, value.operand());
        if (!kind) return std::nullopt;
        return *kind == Kind::Bool ? "bool" : *kind == Kind::Float ? "float" : "int";
      },
      py::arg("value"), "The kind of Python number that a value may stand for, or None.");
  def(c, "may_be_zero", &may_be_zero, py::arg("value"), "Whether an integer may be 0.");
  def(c, "is_known_to_fit", &is_known_to_fit, py::arg("value"), py::arg("dtype"),
      "Whether a dtype of integers is known to hold each element of a traced value of integers.");
  c.def(
      "find_unbounded",
      [](PyGraph& g, const std::vector<PyValue>& carries) -> py::object {
        Operands operands;
        for (const PyValue& x : carries) operands.push_back(x.operand());
        const auto found = graph::numpy::find_unbounded(g, operands);
        if (!found) return py::none();
        return py::make_tuple(found->position, found->locations);
      },
      py::arg("carries"),
      "The position, among these Python integers that loops carry, of one that may exceed 64 bits, "
      "and the lines whose results may be the first to do so. The position is the number of "
      "integers if another integer may exceed them. None if no integer may.");
  c.def(
      "check_integers",
      [](PyGraph& g, const std::set<std::string>& lines) {
        g.may_check_integers = true;
        g.checked_at = lines;
      },
      py::arg("lines_of_loops"),
      "Makes the program check that Python integers fit 64 bits, in loops at these lines.");
  def(c, "depends_on_arguments", &depends_on_arguments, py::arg("value"),
      "Whether a value is computed from an argument of the program.");
  c.def(
      "holds_at",
      [](PyGraph& g, const Argument<Dim>::Python& counter, const PyValue& x, int64_t start,
         int64_t count, int64_t step) {
        return holds_at(g, Argument<Dim>::from(g, counter), x.operand(), start, count, step);
      },
      py::arg("counter"), py::arg("x"), py::arg("start"), py::arg("count"), py::arg("step"),
      "Whether a 0-d bool is true in each of the iterations in which the counter is start, start + "
      "step, and so on. None if it depends on anything but the counter.");
  def(c, "begin_condition", &begin_condition,
      "Begins a condition: values that are traced until it ends are used only where it holds.");
  def(c, "end_condition", &end_condition, py::arg("holds"),
      "Ends the innermost condition, which is a 0-d bool.");
  def(c, "size_value", &size_value, py::arg("size"), "A size as a Python int in computations.");
  def(c, "assume_range", &assume_range);
  def(c, "assume", &assume, py::arg("holds"),
      "Assumes that a 0-d bool is true. The program checks that.");
  def(c, "raise_if", &raise_if, py::arg("raises"), py::arg("number"),
      "Notes that the function raises an exception if a 0-d bool is true. Python then runs the "
      "call. `checks` returns the number.");
  def(c, "assume_nonzero", &assume_nonzero, py::arg("x"),
      "Assumes that a Python number is not 0. The program checks that.");
  def(c, "assume_small", &assume_small, py::arg("x"),
      "A Python integer. Its magnitude is assumed to be at most 2^31.");
  c.def("constant", &constant, py::arg("x"), "The value of a NumPy scalar.");
  def(c, "real", &real);
  def(c, "imag", &imag);
  def(c, "complex", &make_complex);
  def(c, "value", &value_of);
  def(c, "same", &same);
  def(c, "result_type", &common_type);
  def(c, "ufunc", &ufunc, py::arg("name"), py::arg("operands"), no_dtype);
  def(c, "operator", &python_operator);
  def(c, "where", &where);
  def(c, "clip", &clip);
  def(c, "astype", &astype);
  def(c, "bitcast", &bitcast);
  def(c, "full", &full);
  def(c, "iota", &iota, py::arg("shape"), py::arg("dtype"));
  def(c, "reduce", &reduce, py::arg("name"), py::arg("x"), py::arg("axes"), py::arg("keepdims"),
      no_dtype);
  def(c, "scan", &scan, py::arg("op"), py::arg("x"), py::arg("axis"),
      "For each element, the reduction (add, prod, max, min) of the elements up to and including "
      "it along an axis >= 0.");
  def(c, "threefry", &threefry);
  def(c, "contract", &contract);
  def(c, "matmul", &matmul);
  def(c, "reshape", &reshape);
  def(c, "transpose", &transpose);
  def(c, "expand_dims", &expand_dims);
  def(c, "squeeze", &squeeze);
  def(c, "broadcast_to", &broadcast_to);
  def(c, "concatenate", &concatenate);
  def(c, "stack", &stack);
  def(c, "pad", &pad);
  def(c, "diagonal", &diagonal);
  def(c, "windows", &windows);
  def(c, "take", &take, py::arg("x"), py::arg("indices"), py::arg("axis"),
      py::arg("reported") = py::none(), "An error names the axis `reported`, if it is given.");
  def(c, "index", &graph::numpy::index);
  def(c, "put", &put);
  def(c, "indexed_shape", &indexed_shape);
  def(c, "scatter", &scatter);
}

// The bounds of an integer, if they are known.
std::optional<std::pair<int64_t, int64_t>> range_of(const PyGraph& g, const Operand& x) {
  if (x.weak != Kind::Int) return std::nullopt;
  if (x.literal) {
    const auto n = static_cast<int64_t>(x.literal->integer);
    if (n != x.literal->integer) return std::nullopt;
    return std::pair(n, n);
  }
  const auto known = g.ranges.find(x.value);
  if (known == g.ranges.end()) return std::nullopt;
  return std::pair(known->second.first.least(), known->second.second.bound());
}

// Selects a or b, which have the same type.
PyValue select(PyGraph& g, py::handle condition, py::handle a, py::handle b) {
  const Operand x = to_operand(a), y = to_operand(b);
  const Operand strong_x(value_of(g, x)), strong_y(value_of(g, y));
  Operand result = where(g, to_operand(condition), strong_x, strong_y);
  result.weak = x.weak;
  const auto range_x = range_of(g, x), range_y = range_of(g, y);
  if (range_x && range_y)
    g.ranges[result.value] = {std::min(range_x->first, range_y->first),
                              std::max(range_x->second, range_y->second)};
  return wrap(g, result);
}

// The results, with these dtypes and shapes, of call number `call` to a function of the host. A
// function that may raise is called even if its results are not used. `rows`: see
// graph::Host_Callback.
std::vector<PyValue> host_callback(PyGraph& g, const std::string& name, int64_t call,
                                   const py::sequence& operands, const py::sequence& results,
                                   bool may_raise, std::optional<int64_t> rows) {
  std::vector<graph::Value> inputs;
  for (const py::handle x : operands) inputs.push_back(value_of(g, to_operand(x)));
  std::vector<PyValue> values;
  for (const py::handle result : results) {
    const auto [dtype, shape] = result.cast<std::pair<py::object, py::sequence>>();
    const graph::Metadata declared{to_dtype(dtype), to_shape(shape, g.trace), std::nullopt};
    const graph::Host_Callback node{name, call, static_cast<int64_t>(values.size()), rows};
    values.push_back(wrap(g, Operand(g.add(node, inputs, declared))));
  }
  if (may_raise && !values.empty()) g.add(graph::Sink{}, {values.front().operand().value});
  return values;
}

py::list guards(const PyGraph& g) {
  py::list result;
  for (const graph::numpy::ScalarGuard& guard : g.guards) {
    const bool fits = guard.check == graph::numpy::ScalarGuard::Check::FitsDtype;
    result.append(py::make_tuple(
        guard.input, fits ? py::object(to_numpy(guard.dtype)) : py::object(py::none())));
  }
  return result;
}

py::list checks(const PyGraph& g) {
  py::list result;
  for (const graph::numpy::RunCheck& check : g.checks) {
    const auto indices = check.indices ? std::optional(check.indices->id) : std::nullopt;
    result.append(py::make_tuple(wrap(g, check.value), check.axis, wrap(g, check.size),
                                 check.of_raise, indices));
  }
  return result;
}

std::vector<std::pair<std::string, size_t>> lines_of(const graph::Graph& g) {
  std::map<std::string, size_t> counts;
  for (const graph::Node& node : g.nodes) ++counts[node.location];
  return {counts.begin(), counts.end()};
}

}  // namespace

void bind_graph(py::module_& m) {
  bind_values(m);
  py::class_<graph::Graph, std::shared_ptr<graph::Graph>>(m, "Graph", "A high-level graph.")
      .def("__str__", [](const graph::Graph& g) { return graph::print(g); })
      .def("__len__", &graph::Graph::size)
      .def("lines", &lines_of, "The user's lines that made its nodes, as (line, number of nodes).")
      .def_property_readonly(
          "output_dtypes",
          [](const graph::Graph& g) {
            py::list dtypes;
            for (const graph::Value v : g.outputs) dtypes.append(to_numpy(g[v].dtype()));
            return dtypes;
          },
          "Of the outputs, in order.")
      .def("__eq__",
           [](const graph::Graph& a, const graph::Graph& b) { return graph::equal(a, b); })
      .def(
          "verify", [](const graph::Graph& g) { return graph::verify(g); },
          "Every violation of the IR's invariants, as text; empty if the graph is valid.");
  m.def(
      "parse_graph",
      [](const std::string& text) { return std::make_shared<graph::Graph>(graph::parse(text)); },
      py::arg("text"), "Reads a graph's text. Raises ParseError with line and column.");

  Class c(m, "GraphBuilder", "A graph under construction; its methods are NumPy's functions.");
  c.def(py::init([](bool counts_uses, std::optional<size_t> most) {
          auto graph = std::make_shared<PyGraph>();
          if (most) graph->most = *most;
          if (counts_uses) graph->uses = std::make_shared<graph::numpy::Uses>();
          return graph;
        }),
        py::arg("counts_uses") = false, py::arg("most") = py::none(),
        "`most` is the most nodes that it may have. KnownSegments needs `counts_uses`.")
      .def("__len__", [](const PyGraph& g) { return g.size(); })
      .def_property(
          "must_pay", [](const PyGraph& g) { return g.must_pay; },
          [](PyGraph& g, bool must_pay) {
            g.must_pay = must_pay;
            g.allowed = 0;
          },
          "Whether it may have many nodes only if NumPy's time for them is worth compiling them.")
      .def_readwrite("quiet_until", &PyGraph::quiet_until,
                     "after_operation is not called until it has more nodes than this, or a check.")
      .def_property_readonly(
          "is_full", [](const PyGraph& g) { return g.size() > g.most; },
          "Whether it has more nodes than it may have.")
      .def_readonly("pays", &PyGraph::pays,
                    "Whether the graph still has few enough nodes for NumPy's time.")
      .def_property_readonly("has_checks", [](const PyGraph& g) { return !g.checks.empty(); })
      .def_property_readonly("has_checked_integers",
                             [](const PyGraph& g) { return g.has_checked_integers; })
      .def(
          "take_checks",
          [](PyGraph& g) {
            py::list result = checks(g);
            g.checks.clear();
            return result;
          },
          "Returns `checks` and removes them.")
      .def(
          "with_id", [](PyGraph& g, uint32_t id) { return wrap(g, Operand(graph::Value{id})); },
          py::arg("id"), "The value with this id.")
      .def(
          "python_bool",
          [](PyGraph& g, py::handle x) {
            return wrap(g, Operand(to_operand(x).value, Kind::Bool));
          },
          "A 0-d bool as a Python bool.")
      .def("select", &select, py::arg("condition"), py::arg("a"), py::arg("b"),
           "a or b, which have the same type. Python's numbers stay Python's.")
      .def("inputs_behind", &inputs_behind, py::arg("value"),
           "The numbers of the inputs from which a value is computed. None if it depends on a "
           "dynamic size.")
      .def_property_readonly(
          "guards", &guards,
          "(input, dtype) for a Python int that must fit the dtype, (input, None) "
          "for a number that must not be zero.")
      .def_property_readonly("checks", &checks,
                             "(value, axis, size) of each check of traced indices. The value is a "
                             "0-d uint64, which is not 0 if an index is out of bounds.")
      .def("host_callback", &host_callback, py::arg("name"), py::arg("call"), py::arg("operands"),
           py::arg("results"), py::arg("may_raise"), py::arg("rows") = py::none(),
           "The results, with these dtypes and shapes, of call number `call` to a function of the "
           "host. A function that may raise is called even if its results are not used. `rows` is "
           "the number of first axes of operand 0 and of the results whose points the function "
           "treats one by one.")
      .def(
          "finish",
          [](const PyGraph& g, const std::vector<PyValue>& outputs) {
            auto graph = std::make_shared<graph::Graph>(g.graph());
            for (const PyValue& v : outputs) graph->outputs.push_back(v.operand().value);
            return graph;
          },
          "The graph so far with these outputs.");
  bind_functions(c);
}

}  // namespace rune::bindings
