// Graphs under construction: GraphBuilder, whose methods are NumPy's functions, and its Values.
#include "base/error.h"
#include "bindings/bindings.h"
#include "graph/numpy_ops.h"
#include "graph/text.h"
#include "graph/verify.h"

namespace rune::bindings {

using graph::NumpyBuilder;
using graph::Operand;
using graph::Operands;

namespace {

class PyBuilder : public NumpyBuilder {
 public:
  // What tells its sizes from those of other traces.
  const std::shared_ptr<const void>& trace() const { return trace_; }
  Dim dim(py::handle size) const { return to_dim(size, trace_); }
  Shape shape_of(const py::sequence& sizes) const { return to_shape(sizes, trace_); }

 private:
  std::shared_ptr<const void> trace_ = std::make_shared<char>();
};

// A value of a graph, with what Python asks of it. Its builder is known to the tracer that holds
// it.
struct PyValue {
  Operand operand;
  Shape shape;
  DType dtype = DType::Float32;
  std::shared_ptr<const void> trace;
};

std::optional<Operand> literal(py::handle x) {
  if (PyBool_Check(x.ptr())) return graph::Literal::of(x.ptr() == Py_True);
  if (PyLong_CheckExact(x.ptr())) {
    int overflow = 0;
    const long long small = PyLong_AsLongLongAndOverflow(x.ptr(), &overflow);
    graph::Literal result = graph::Literal::of(static_cast<int64_t>(small));
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
  if (PyFloat_CheckExact(x.ptr())) return graph::Literal::of(PyFloat_AS_DOUBLE(x.ptr()));
  return std::nullopt;
}

Operand to_operand(py::handle x) {
  if (const auto value = literal(x)) return *value;
  if (!py::isinstance<PyValue>(x))
    user_error(ErrorKind::Unsupported, "operand: cannot trace a ",
               std::string(py::str(py::type::of(x).attr("__name__"))));
  return x.cast<const PyValue&>().operand;
}

Operands to_operands(const py::sequence& xs) {
  Operands result;
  for (const py::handle x : xs) result.push_back(to_operand(x));
  return result;
}

PyValue wrap(PyBuilder& b, const Operand& x) {
  return {x, b.shape(x), b.dtype(x), b.trace()};
}

// The results, of these (dtype, shape), of call number `call` to a function of the host. One that
// may raise is called whether its results are used or not.
std::vector<PyValue> host_callback(PyBuilder& b, const std::string& name, int64_t call,
                                   const py::sequence& operands, const py::sequence& results,
                                   bool may_raise) {
  std::vector<graph::Value> inputs;
  for (const py::handle x : operands) inputs.push_back(b.value_of(to_operand(x)));
  std::vector<PyValue> values;
  for (const py::handle result : results) {
    const auto type = py::reinterpret_borrow<py::sequence>(result);
    const graph::Metadata declared{to_dtype(type[0]), b.shape_of(type[1]), std::nullopt};
    const graph::Host_Callback node{name, call, static_cast<int64_t>(values.size())};
    values.push_back(wrap(b, Operand(b.builder().add(node, inputs, declared))));
  }
  if (may_raise && !values.empty()) b.builder().add(graph::Sink{}, {values.front().operand.value});
  return values;
}

std::vector<PyValue> wrap_all(PyBuilder& b, const Operands& xs) {
  std::vector<PyValue> result;
  for (const Operand& x : xs) result.push_back(wrap(b, x));
  return result;
}

std::optional<DType> optional_dtype(const py::object& dtype) {
  if (dtype.is_none()) return std::nullopt;
  return to_dtype(dtype);
}

std::optional<Kind> weak_kind(const py::object& name) {
  if (name.is_none()) return std::nullopt;
  const auto text = name.cast<std::string>();
  if (text == "int") return Kind::Int;
  RUNE_CHECK(text == "float", "weak kind ", text);
  return Kind::Float;
}

py::object weak_name(const std::optional<Kind>& weak) {
  if (!weak) return py::none();
  switch (*weak) {
    case Kind::Bool: return py::str("bool");
    case Kind::Int:
    case Kind::Uint: return py::str("int");
    case Kind::Float: return py::str("float");
  }
  RUNE_UNREACHABLE();
}

Scalar scalar_from_numpy(const py::object& x) {
  const py::array array = py::array::ensure(x);
  if (!array || array.ndim() != 0)
    user_error(ErrorKind::Value, "constant: cannot embed an array (only NumPy scalars)");
  return Scalar::load(to_dtype(array.dtype()), array.data());
}

// Items: int, slice of ints and Sizes, None, Ellipsis, or a Value of integers.
std::vector<graph::IndexItem> to_index(const PyBuilder& b, const py::sequence& items) {
  using ItemKind = graph::IndexItem::Kind;
  std::vector<graph::IndexItem> result;
  for (const py::handle item : items) {
    graph::IndexItem out;
    if (item.is_none()) {
      out.kind = ItemKind::NewAxis;
    } else if (item.ptr() == Py_Ellipsis) {
      out.kind = ItemKind::Ellipsis;
    } else if (PySlice_Check(item.ptr())) {
      out.kind = ItemKind::Slice;
      const auto bound = [&](const char* name) {
        const py::object given = item.attr(name);
        return given.is_none() ? std::nullopt : std::optional(b.dim(given));
      };
      out.start = bound("start");
      out.stop = bound("stop");
      out.step = item.attr("step").cast<std::optional<int64_t>>();
    } else if (py::isinstance<PyValue>(item)) {
      out.kind = ItemKind::Array;
      out.array = to_operand(item);
    } else {
      out.kind = ItemKind::Integer;
      out.integer = item.cast<int64_t>();
    }
    result.push_back(std::move(out));
  }
  return result;
}

using Class = py::class_<PyBuilder, std::shared_ptr<PyBuilder>>;

// A method that takes one operand and further arguments as they are.
template <class Result, class... Args>
void unary(Class& c, const char* name, Result (NumpyBuilder::*method)(const Operand&, Args...)) {
  c.def(name, [method](PyBuilder& b, py::handle x, std::decay_t<Args>... args) {
    return wrap(b, (b.*method)(to_operand(x), std::move(args)...));
  });
}

void binary(Class& c, const char* name,
            Operand (NumpyBuilder::*method)(const Operand&, const Operand&)) {
  c.def(name, [method](PyBuilder& b, py::handle x, py::handle y) {
    return wrap(b, (b.*method)(to_operand(x), to_operand(y)));
  });
}

void bind_arithmetic(Class& c) {
  c.def(
      "ufunc",
      [](PyBuilder& b, const std::string& name, const py::sequence& xs, const py::object& dtype) {
        return wrap_all(b, b.ufunc(name, to_operands(xs), optional_dtype(dtype)));
      },
      py::arg("name"), py::arg("operands"), py::arg("dtype") = py::none());
  c.def("operator", [](PyBuilder& b, const std::string& name, const py::sequence& xs) {
    return wrap(b, b.python_operator(name, to_operands(xs)));
  });
  c.def("where", [](PyBuilder& b, py::handle condition, py::handle x, py::handle y) {
    return wrap(b, b.where(to_operand(condition), to_operand(x), to_operand(y)));
  });
  c.def("clip", [](PyBuilder& b, py::handle x, py::handle low, py::handle high) {
    const auto bound = [](py::handle v) {
      return v.is_none() ? std::nullopt : std::optional<Operand>(to_operand(v));
    };
    return wrap(b, b.clip(to_operand(x), bound(low), bound(high)));
  });
  c.def("astype", [](PyBuilder& b, py::handle x, const py::object& dtype) {
    return wrap(b, b.astype(to_operand(x), to_dtype(dtype)));
  });
  c.def("full",
        [](PyBuilder& b, const py::sequence& shape, py::handle fill, const py::object& dtype) {
          return wrap(b, b.full(b.shape_of(shape), to_operand(fill), optional_dtype(dtype)));
        });
  c.def("result_type", [](PyBuilder& b, const py::sequence& xs) {
    return to_numpy(b.common_type("result_type", to_operands(xs)));
  });
}

void bind_reductions(Class& c) {
  using graph::Axes;
  c.def("reduce", [](PyBuilder& b, const std::string& name, py::handle x, const Axes& axes,
                     bool keepdims, const py::object& dtype) {
    return wrap(b, b.reduce(name, to_operand(x), axes, keepdims, optional_dtype(dtype)));
  });
  c.def(
      "scan",
      [](PyBuilder& b, const std::string& op, py::handle x, int64_t axis) {
        text::Lexer lexer(op);
        const auto reduce = text::Codec<ReduceOp>::parse(lexer);
        return wrap(b, b.builder().scan(reduce, b.value_of(to_operand(x)), axis));
      },
      py::arg("op"), py::arg("x"), py::arg("axis"),
      "Reductions (add, prod, max, min) of the elements up to and with each along an axis >= 0.");
  c.def("mean",
        [](PyBuilder& b, py::handle x, const Axes& axes, bool keepdims, const py::object& dtype) {
          return wrap(b, b.mean(to_operand(x), axes, keepdims, optional_dtype(dtype)));
        });
  c.def("variance", [](PyBuilder& b, py::handle x, const Axes& axes, bool keepdims,
                       const py::object& dtype, double correction, bool root) {
    return wrap(b,
                b.variance(to_operand(x), axes, keepdims, optional_dtype(dtype), correction, root));
  });
  c.def("arg_reduce", [](PyBuilder& b, bool largest, py::handle x, std::optional<int64_t> axis,
                         bool keepdims, py::handle positions) {
    return wrap(b, b.arg_reduce(largest, to_operand(x), axis, keepdims, to_operand(positions)));
  });
  c.def("count_to", [](PyBuilder& b, py::handle size) { return wrap(b, b.count_to(b.dim(size))); });
  binary(c, "threefry", &NumpyBuilder::threefry);
  binary(c, "matmul", &NumpyBuilder::matmul);
  binary(c, "dot", &NumpyBuilder::dot);
  binary(c, "inner", &NumpyBuilder::inner);
  binary(c, "outer", &NumpyBuilder::outer);
  c.def("tensordot",
        [](PyBuilder& b, py::handle x, py::handle y, const Ints& axes_x, const Ints& axes_y) {
          return wrap(b, b.tensordot(to_operand(x), to_operand(y), axes_x, axes_y));
        });
  c.def("einsum", [](PyBuilder& b, const std::string& subscripts, const py::sequence& xs) {
    return wrap(b, b.einsum(subscripts, to_operands(xs)));
  });
}

void bind_movement(Class& c) {
  c.def("reshape", [](PyBuilder& b, py::handle x, const py::sequence& shape) {
    return wrap(b, b.reshape(to_operand(x), b.shape_of(shape)));
  });
  unary(c, "transpose", &NumpyBuilder::transpose);
  unary(c, "swapaxes", &NumpyBuilder::swapaxes);
  unary(c, "expand_dims", &NumpyBuilder::expand_dims);
  unary(c, "squeeze", &NumpyBuilder::squeeze);
  c.def("broadcast_to", [](PyBuilder& b, py::handle x, const py::sequence& shape) {
    return wrap(b, b.broadcast_to(to_operand(x), b.shape_of(shape)));
  });
  unary(c, "roll", &NumpyBuilder::roll);
  unary(c, "repeat", &NumpyBuilder::repeat);
  unary(c, "tile", &NumpyBuilder::tile);
  unary(c, "diagonal", &NumpyBuilder::diagonal);
  unary(c, "windows", &NumpyBuilder::windows);
  c.def("concatenate", [](PyBuilder& b, const py::sequence& xs, std::optional<int64_t> axis,
                          const py::object& dtype) {
    return wrap(b, b.concatenate(to_operands(xs), axis, optional_dtype(dtype)));
  });
  c.def("stack", [](PyBuilder& b, const py::sequence& xs, int64_t axis) {
    return wrap(b, b.stack(to_operands(xs), axis));
  });
  c.def("pad",
        [](PyBuilder& b, py::handle x, const std::vector<std::pair<py::object, py::object>>& widths,
           const std::string& mode, py::handle fill) {
          graph::DimPairs sizes;
          for (const auto& [before, after] : widths)
            sizes.emplace_back(b.dim(before), b.dim(after));
          return wrap(b, b.pad(to_operand(x), sizes, mode, to_operand(fill)));
        });
  c.def("take", [](PyBuilder& b, py::handle x, py::handle indices, std::optional<int64_t> axis) {
    return wrap(b, b.take(to_operand(x), to_operand(indices), axis));
  });
  c.def("index", [](PyBuilder& b, py::handle x, const py::sequence& items) {
    return wrap(b, b.index(to_operand(x), to_index(b, items)));
  });
  c.def("put", [](PyBuilder& b, py::handle x, const py::sequence& items, py::handle value) {
    return wrap(b, b.put(to_operand(x), to_index(b, items), to_operand(value)));
  });
  c.def("indexed_shape", [](PyBuilder& b, py::handle x, const py::sequence& items) {
    const Shape shape = b.indexed_shape(to_operand(x), to_index(b, items));
    return to_python(shape, b.trace());
  });
  c.def("scatter", [](PyBuilder& b, py::handle x, const py::sequence& items, py::handle updates,
                      const std::string& mode) {
    for (int i = 0; i < graph::kNumScatterModes; ++i)
      if (mode == name_of(static_cast<graph::ScatterMode>(i)))
        return wrap(b, b.scatter(to_operand(x), to_index(b, items), to_operand(updates),
                                 static_cast<graph::ScatterMode>(i)));
    user_error(ErrorKind::Value, "scatter: cannot combine by ", mode);
  });
  c.def("running_count",
        [](PyBuilder& b, py::handle mask) { return wrap(b, b.running_count(to_operand(mask))); });
  c.def("assume_range", [](PyBuilder& b, py::handle x, int64_t low, int64_t high) {
    b.assume_range(to_operand(x), low, high);
  });
  c.def("same", [](const PyBuilder& b, py::handle x, py::handle y) {
    return b.same(to_operand(x), to_operand(y));
  });
}

py::list guards(const PyBuilder& b) {
  py::list result;
  for (const graph::ScalarGuard& guard : b.guards()) {
    const bool fits = guard.check == graph::ScalarGuard::Check::FitsDtype;
    result.append(py::make_tuple(
        guard.input, fits ? py::object(to_numpy(guard.dtype)) : py::object(py::none())));
  }
  return result;
}

py::list checks(PyBuilder& b) {
  py::list result;
  for (const graph::IndexCheck& check : b.checks())
    result.append(
        py::make_tuple(wrap(b, check.value), check.axis, to_python(check.size, b.trace())));
  return result;
}

}  // namespace

void bind_graph(py::module_& m) {
  py::class_<PyValue>(m, "Value", "A value of a graph.")
      .def_property_readonly("shape", [](const PyValue& v) { return to_python(v.shape, v.trace); })
      .def_property_readonly("ndim", [](const PyValue& v) { return v.shape.size(); })
      .def_property_readonly("dtype", [](const PyValue& v) { return to_numpy(v.dtype); })
      .def_property_readonly("id", [](const PyValue& v) { return v.operand.value.id; })
      .def_property_readonly(
          "weak", [](const PyValue& v) { return weak_name(v.operand.weak); },
          "None, or the Python type that it stands for: bool, int, float.");

  py::class_<graph::Graph, std::shared_ptr<graph::Graph>>(m, "Graph", "A high-level graph.")
      .def("__str__", [](const graph::Graph& g) { return graph::print(g); })
      .def("__len__", &graph::Graph::size)
      .def("__eq__",
           [](const graph::Graph& a, const graph::Graph& b) { return graph::equal(a, b); })
      .def(
          "verify", [](const graph::Graph& g) { return graph::verify(g); },
          "Every violation of the IR's invariants, as text; empty if the graph is valid.")
      .def_property_readonly("num_inputs", [](const graph::Graph& g) { return g.inputs().size(); })
      .def_property_readonly("output_types", [](const graph::Graph& g) {
        py::list result;
        for (const graph::Value v : g.outputs)
          result.append(py::make_tuple(to_numpy(g[v].dtype()), to_python(g[v].shape())));
        return result;
      });
  m.def(
      "parse_graph",
      [](const std::string& text) { return std::make_shared<graph::Graph>(graph::parse(text)); },
      py::arg("text"), "Reads a graph's text. Raises ParseError with line and column.");

  Class c(m, "GraphBuilder", "A graph under construction; its methods are NumPy's functions.");
  c.def(py::init<>())
      .def(
          "input",
          [](PyBuilder& b, const py::object& dtype, const py::sequence& shape,
             const py::object& weak) {
            return wrap(b, b.input(to_dtype(dtype), b.shape_of(shape), weak_kind(weak)));
          },
          py::arg("dtype"), py::arg("shape"), py::arg("weak") = py::none())
      .def(
          "define_size",
          [](PyBuilder& b, const std::string& name, int64_t low, int64_t high) {
            return to_python(b.define_size(name, low, high), b.trace());
          },
          py::arg("name"), py::arg("low"), py::arg("high"),
          "A size that is known when the program runs.")
      .def(
          "size_value",
          [](PyBuilder& b, py::handle size) { return wrap(b, b.size_of(b.dim(size))); },
          py::arg("size"), "A size as a Python int in computations.")
      .def("constant",
           [](PyBuilder& b, const py::object& scalar) {
             return wrap(b, b.constant(scalar_from_numpy(scalar)));
           })
      .def("value", [](PyBuilder& b, py::handle x) { return wrap(b, b.value_of(to_operand(x))); })
      .def(
          "python_bool",
          [](PyBuilder& b, py::handle x) {
            Operand number = to_operand(x);
            number.weak = Kind::Bool;
            return wrap(b, number);
          },
          "A 0-d bool as a Python one.")
      .def(
          "set_location",
          [](PyBuilder& b, std::string location) { b.builder().set_location(std::move(location)); })
      .def_property_readonly(
          "guards", &guards,
          "(input, dtype) for a Python int that must fit the dtype, (input, None) "
          "for a number that must not be zero.")
      .def_property_readonly("checks", &checks,
                             "(value, axis, size) of each check of traced indices; the value is a "
                             "0-d uint64, nonzero if an index is out of bounds.")
      .def(
          "finish",
          [](PyBuilder& b, const std::vector<PyValue>& outputs) {
            std::vector<graph::Value> values;
            for (const PyValue& v : outputs) values.push_back(v.operand.value);
            graph::Graph graph = b.builder().graph();
            graph.outputs = std::move(values);
            return std::make_shared<graph::Graph>(std::move(graph));
          },
          "The graph so far with these outputs.");
  c.def("host_callback", &host_callback, py::arg("name"), py::arg("call"), py::arg("operands"),
        py::arg("results"), py::arg("may_raise"),
        "Values of the results, of these (dtype, shape), of call number `call` to a function. One "
        "that may raise is called whether its results are used or not.");
  bind_arithmetic(c);
  bind_reductions(c);
  bind_movement(c);
}

}  // namespace rune::bindings
