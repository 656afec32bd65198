#include "graph/infer.h"

#include <algorithm>

#include "graph/infer_detail.h"

namespace rune::graph {

namespace detail {

void refuse_difference(const Shape& a, const Shape& b, const std::string& message) {
  if (a.size() != b.size())
    user_error(ErrorKind::Value, message, " (number of dimensions: ", a.size(), " and ", b.size(),
               ")");
  const auto [x, y] = std::mismatch(a.begin(), a.end(), b.begin());
  refuse_sizes({*x, *y},
               concat(message, " (dimension ", x - a.begin(), ": ", *x, " and ", *y, ")"));
}

void check_same_shape(const char* op, const char* verb, const Shape& a, const char* to,
                      const Shape& b) {
  if (a == b) return;
  refuse_difference(a, b,
                    concat(op, ": cannot ", verb, " ", shape_text(a), " ", to, " ", shape_text(b)));
}

void check_same_dtype(const char* op, DType expected, DType found, size_t i) {
  if (expected == found) return;
  user_error(ErrorKind::Type, op, ": cannot take ", numpy_name(found), " as operand ", i,
             " (dtype: ", numpy_name(found), ", expected ", numpy_name(expected), ")");
}

void check_axis(const char* op, int64_t axis, const Shape& shape) {
  if (axis >= 0 && axis < static_cast<int64_t>(shape.size())) return;
  user_error(ErrorKind::Index, op, ": cannot use axis ", axis, " of ", shape_text(shape),
             " (number of dimensions: ", shape.size(), ")");
}

void check_axes(const char* op, const Ints& axes, const Shape& shape) {
  std::vector<bool> seen(shape.size());
  for (const int64_t axis : axes) {
    check_axis(op, axis, shape);
    if (seen[axis])
      user_error(ErrorKind::Value, op, ": cannot use axes ", text::to_text(axes), " of ",
                 shape_text(shape), " (axis ", axis, " is named twice)");
    seen[axis] = true;
  }
}

void check_entries(const char* op, const char* what, size_t count, const Shape& shape) {
  if (count == shape.size()) return;
  user_error(ErrorKind::Value, op, ": cannot apply ", count, " ", what, " to ", shape_text(shape),
             " (number of dimensions: ", count, " and ", shape.size(), ")");
}

void check_sizes(const char* op, const Shape& shape) {
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i].least() < 0)
      user_error(ErrorKind::Value, op, ": cannot make an array of shape ", shape_text(shape),
                 " (dimension ", i, ": ", shape[i], shape[i].is_constant() ? " is" : " may be",
                 " negative)");
  max_elements(shape);
}

bool is_range(const std::pair<Dim, Dim>& range, const Dim& size) {
  return range.first.least() >= 0 && always_at_most(range.first, range.second) &&
         always_at_most(range.second, size);
}

void check_constant(const char* op, const Shape& shape) {
  if (is_constant(shape)) return;
  refuse_sizes(shape, concat(op, ": cannot handle the symbolic size of ", shape_text(shape)));
}

void check_integer(const char* op, const char* what, DType dtype) {
  if (is_integer(dtype)) return;
  user_error(ErrorKind::Type, op, ": cannot use ", numpy_name(dtype), " as ", what,
             " (dtype: ", numpy_name(dtype), ", expected an integer)");
}

namespace {

Metadata scalar_int64() {
  return result(DType::Int64, {});
}

Metadata infer_node(const Buffer& node, const Operands& in) {
  Metadata meta = in.declared;
  check_constant("buffer", meta.shape);
  check_sizes("buffer", meta.shape);
  if (const int64_t count = max_elements(meta.shape); count != node.size)
    user_error(ErrorKind::Value, "buffer: cannot give the shape ", shape_text(meta.shape), " to ",
               node.size, " elements (number of elements: ", count, " and ", node.size, ")");
  meta.device = node.device.empty() ? std::nullopt : std::optional(node.device);
  return meta;
}

Metadata infer_node(const Buffer_View& node, const Operands& in) {
  const Shape& from = in.shape(0);
  check_constant("buffer_view", from);
  if (from.size() != 1)
    user_error(ErrorKind::Value, "buffer_view: cannot view a part of ", shape_text(from),
               " (number of dimensions: ", from.size(), ", expected 1)");
  if (node.offset < 0 || node.size < 0 || node.offset > from[0].constant() ||
      node.size > from[0].constant() - node.offset)
    user_error(ErrorKind::Value, "buffer_view: cannot view ", node.size, " elements of ",
               shape_text(from), " from element ", node.offset, " (dimension 0: ", from[0], ")");
  return result(in.dtype(0), {node.size});
}

Metadata infer_node(const Placeholder& node, const Operands& in) {
  if (node.index < 0)
    user_error(ErrorKind::Value, "placeholder: cannot be argument ", node.index,
               " (index: ", node.index, " is negative)");
  check_sizes("placeholder", in.declared.shape);
  return in.declared;
}

Metadata infer_node(const Const_Scalar& node, const Operands&) {
  return result(node.value.dtype(), {});
}

Metadata infer_node(const Vconst& node, const Operands&) {
  if (node.values.empty())
    user_error(ErrorKind::Value,
               "vconst: cannot make a constant of no values (its dtype is unknown)");
  const DType dtype = node.values[0].dtype();
  for (size_t i = 0; i < node.values.size(); ++i)
    if (node.values[i].dtype() != dtype)
      user_error(ErrorKind::Type, "vconst: cannot join ", numpy_name(dtype), " to ",
                 numpy_name(node.values[i].dtype()), " (value ", i, ")");
  return result(dtype, {static_cast<int64_t>(node.values.size())});
}

Metadata infer_alu(AluOp op, const Operands& in) {
  std::vector<DType> dtypes;
  for (size_t i = 0; i < in.size(); ++i) dtypes.push_back(in.dtype(i));
  const DType dtype = result_dtype(op, dtypes);
  for (size_t i = 1; i < in.size(); ++i)
    check_same_shape(name_of(op), "combine", in.shape(0), "with", in.shape(i));
  return result(dtype, in.shape(0));
}

template <class Kind>
  requires(std::is_same_v<decltype(Kind::op), AluOp>)  // Unary, Binop, Ternary
Metadata infer_node(const Kind& node, const Operands& in) {
  return infer_alu(node.op, in);
}

void check_reduced_dtype(const std::string& op, ReduceOp reduce, DType dtype) {
  if (!info(alu_of(reduce)).accepts(dtype))
    user_error(ErrorKind::Type, op, ": cannot reduce ", numpy_name(dtype), " to ",
               numpy_name(dtype), " (dtype: ", numpy_name(dtype),
               ")\nhint: cast to an integer first");
}

Metadata infer_node(const Reduce_Axis& node, const Operands& in) {
  const std::string op = concat("reduce_axis ", name_of(node.op));
  check_axes(op.c_str(), node.axes, in.shape(0));
  check_reduced_dtype(op, node.op, in.dtype(0));
  Shape shape = in.shape(0);
  for (const int64_t axis : node.axes) shape[axis] = 1;
  return result(in.dtype(0), std::move(shape));
}

Metadata infer_node(const Scan& node, const Operands& in) {
  const std::string op = concat("scan ", name_of(node.op));
  check_axis(op.c_str(), node.axis, in.shape(0));
  check_reduced_dtype(op, node.op, in.dtype(0));
  if (in.size() == 2) {
    check_same_dtype(op.c_str(), in.dtype(0), in.dtype(1), 1);
    Shape initial = in.shape(0);
    initial[node.axis] = 1;
    check_same_shape(op.c_str(), "begin with", in.shape(1), "values of", initial);
  }
  return result(in.dtype(0), in.shape(0));
}

Metadata infer_node(const Wmma& node, const Operands& in) {
  const Shape expected[] = {{node.m, node.k}, {node.k, node.n}, {node.m, node.n}};
  for (size_t i = 0; i < 3; ++i)
    check_same_shape("wmma", concat("take operand ", i, " of").c_str(), in.shape(i), "as",
                     expected[i]);
  check_same_dtype("wmma", in.dtype(0), in.dtype(1), 1);
  if (!is_float(in.dtype(0)) || !is_float(in.dtype(2)) ||
      promote(in.dtype(0), in.dtype(2)) != in.dtype(2))
    user_error(ErrorKind::Type, "wmma: cannot accumulate ", numpy_name(in.dtype(0)), " in ",
               numpy_name(in.dtype(2)), " (dtypes: floats, the accumulator at least as wide)");
  return result(in.dtype(2), expected[2]);
}

Metadata infer_node(const Complex&, const Operands& in) {
  const DType part = in.dtype(0);
  if (part != DType::Float32 && part != DType::Float64)
    user_error(ErrorKind::Type, "complex: cannot make complex numbers of ", numpy_name(part),
               " (dtype: ", numpy_name(part), ", expected float32 or float64)");
  check_same_dtype("complex", part, in.dtype(1), 1);
  check_same_shape("complex", "combine", in.shape(0), "with", in.shape(1));
  return result(complex_of(part), in.shape(0));
}

template <class Kind>
  requires(std::is_same_v<Kind, Real> || std::is_same_v<Kind, Imag>)
Metadata infer_node(const Kind&, const Operands& in) {
  if (!is_complex(in.dtype(0)))
    user_error(ErrorKind::Type, "real, imag: cannot take a part of ", numpy_name(in.dtype(0)),
               " (dtype: ", numpy_name(in.dtype(0)), ", expected a complex one)");
  return result(real_of(in.dtype(0)), in.shape(0));
}

Metadata infer_node(const Cast& node, const Operands& in) {
  return result(node.target, in.shape(0));
}

Metadata infer_node(const Bitcast& node, const Operands& in) {
  if (size_of(node.target) != size_of(in.dtype(0)))
    user_error(ErrorKind::Type, "bitcast: cannot reinterpret ", numpy_name(in.dtype(0)), " as ",
               numpy_name(node.target), " (item size: ", size_of(in.dtype(0)), " and ",
               size_of(node.target), ")");
  return result(node.target, in.shape(0));
}

template <class Kind>
  requires(std::is_same_v<Kind, Contiguous> || std::is_same_v<Kind, Detach> ||
           std::is_same_v<Kind, Contiguous_Backward> || std::is_same_v<Kind, Fuse>)
Metadata infer_node(const Kind&, const Operands& in) {
  return same_as_operand(in);
}

Metadata infer_node(const Copy& node, const Operands& in) {
  Metadata meta = same_as_operand(in);
  if (node.device.empty()) return meta;
  check_constant("copy", meta.shape);
  meta.device = node.device;
  return meta;
}

Metadata infer_node(const Assign& node, const Operands& in) {
  if (node.boxes.size() + 1 != in.size())
    user_error(ErrorKind::Value, "assign: cannot write ", in.size() - 1, " values to ",
               node.boxes.size(), " boxes (number of values: ", in.size() - 1, " and ",
               node.boxes.size(), ")");
  const Shape& target = in.shape(0);
  for (size_t i = 0; i < node.boxes.size(); ++i) {
    const DimPairs& box = node.boxes[i];
    check_same_dtype("assign", in.dtype(0), in.dtype(i + 1), i + 1);
    Shape region = target;
    if (!box.empty()) {
      check_entries("assign", "limits of a box", box.size(), target);
      for (size_t d = 0; d < target.size(); ++d) {
        if (!is_range(box[d], target[d]))
          refuse_sizes({box[d].first, box[d].second, target[d]},
                       concat("assign: cannot write the box ", text::to_text(box), " of ",
                              shape_text(target), " (dimension ", d, ": [", box[d].first, ",",
                              box[d].second, ") of ", target[d], ")"));
        region[d] = box[d].second - box[d].first;
      }
    }
    check_same_shape("assign", concat("write value ", i, " of").c_str(), in.shape(i + 1), "to",
                     region);
  }
  return same_as_operand(in);
}

template <class Kind>
  requires(std::is_same_v<Kind, Define_Var> || std::is_same_v<Kind, Loop_Counter> ||
           std::is_same_v<Kind, Loop_Size>)
Metadata infer_node(const Kind& node, const Operands& in) {
  if (in.size() > 0 && (in.rank(0) != 0 || in.dtype(0) != DType::Int64))
    user_error(ErrorKind::Type, "loop_size: cannot be the value of a ", name_of(in.dtype(0)),
               shape_text(in.shape(0)), " (of a 0-d i64 only)");
  const SymVar& var = node.var;
  if (var.name.empty())
    user_error(ErrorKind::Value, "define_var: cannot define a variable without a name");
  if (var.min_val > var.max_val)
    user_error(ErrorKind::Value, "define_var: cannot bound ", var.name, " by [", var.min_val, ",",
               var.max_val, "] (the lower bound is above the upper)");
  return scalar_int64();
}

Metadata infer_node(const Bind& node, const Operands& in) {
  check_same_dtype("bind", DType::Int64, in.dtype(0), 0);
  check_same_shape("bind", concat("bind ", node.value, " to a variable of").c_str(), in.shape(0),
                   "as", {});
  return scalar_int64();
}

Metadata infer_node(const Sink&, const Operands&) {
  return no_value();
}

Metadata infer_node(const Kernel& node, const Operands& in) {
  if (node.local_dims < 0 || node.upcasted < 0)
    user_error(ErrorKind::Value, "kernel: cannot map ", node.local_dims, " local and ",
               node.upcasted, " upcasted dimensions (one is negative)");
  return same_as_operand(in);
}

Metadata infer_node(const Unique&, const Operands&) {
  return scalar_int64();
}

Metadata infer_node(const Device& node, const Operands&) {
  if (node.name.empty())
    user_error(ErrorKind::Value, "device: cannot make a device (its name is empty)");
  Metadata meta = no_value();
  meta.device = node.name;
  return meta;
}

Metadata infer_node(const Multi& node, const Operands& in) {
  if (node.real.size() != in.size())
    user_error(ErrorKind::Value, "multi: cannot mark ", in.size(), " shards by ", node.real.size(),
               " flags (number of shards: ", in.size(), " and ", node.real.size(), ")");
  if (node.axis) check_axis("multi", *node.axis, in.shape(0));
  Shape shape = in.shape(0);
  for (size_t i = 0; i < in.size(); ++i) check_constant("multi", in.shape(i));
  for (size_t i = 1; i < in.size(); ++i) {
    check_same_dtype("multi", in.dtype(0), in.dtype(i), i);
    Shape expected = in.shape(0);
    if (node.axis && in.rank(i) == in.rank(0)) expected[*node.axis] = in.shape(i)[*node.axis];
    check_same_shape("multi", "join a shard of", expected, "to one of", in.shape(i));
    if (node.axis) shape[*node.axis] += in.shape(i)[*node.axis];
  }
  check_sizes("multi", shape);
  return result(in.dtype(0), std::move(shape));
}

Metadata infer_node(const Unroll& node, const Operands& in) {
  if (node.factor < 1 || in.shape(0).empty())
    user_error(ErrorKind::Value, "unroll: cannot unroll the last axis of ", shape_text(in.shape(0)),
               " by ", node.factor, " (number of dimensions: ", in.shape(0).size(),
               ", at least 1; factor: ", node.factor, ", at least 1)");
  return same_as_operand(in);
}

// Checks one list of axis pairs, marking the axes as used.
void check_pairs(const Pairs& pairs, const char* what, const Operands& in,
                 std::vector<bool> (&used)[2]) {
  for (const auto& [x, y] : pairs) {
    const int64_t axes[] = {x, y};
    for (size_t i = 0; i < 2; ++i) {
      check_axis("contract", axes[i], in.shape(i));
      if (used[i][axes[i]])
        user_error(ErrorKind::Value, "contract: cannot use axis ", axes[i], " of ",
                   shape_text(in.shape(i)), " twice (operand ", i, ", in ", what, ")");
      used[i][axes[i]] = true;
    }
    if (in.shape(0)[x] != in.shape(1)[y])
      refuse_sizes({in.shape(0)[x], in.shape(1)[y]},
                   concat("contract: cannot contract ", shape_text(in.shape(0)), " with ",
                          shape_text(in.shape(1)), " (", what, " of dimensions ", x, " and ", y,
                          ": ", in.shape(0)[x], " and ", in.shape(1)[y], ")"));
  }
}

Metadata infer_node(const Contract& node, const Operands& in) {
  check_same_dtype("contract", in.dtype(0), in.dtype(1), 1);
  if (is_bool(in.dtype(0)))
    user_error(ErrorKind::Type, "contract: cannot sum products of ", numpy_name(in.dtype(0)),
               " (dtype: bool, expected an integer or a float)");
  std::vector<bool> used[] = {std::vector<bool>(in.shape(0).size()),
                              std::vector<bool>(in.shape(1).size())};
  check_pairs(node.batch, "batch", in, used);
  check_pairs(node.contract, "contraction", in, used);
  Shape shape;
  for (const auto& [x, y] : node.batch) shape.push_back(in.shape(0)[x]);
  for (size_t i = 0; i < 2; ++i)
    for (const int64_t d : free_axes(node, i, in.shape(i).size())) shape.push_back(in.shape(i)[d]);
  check_sizes("contract", shape);
  return result(in.dtype(0), std::move(shape));
}

Metadata infer_node(const Threefry&, const Operands& in) {
  for (size_t i = 0; i < 2; ++i) {
    check_same_dtype("threefry", DType::Uint32, in.dtype(i), i);
    if (in.shape(i).empty() || in.shape(i).back() != 2)
      user_error(ErrorKind::Value, "threefry: cannot read pairs from ", shape_text(in.shape(i)),
                 " (operand ", i, ": the last dimension must be 2)");
  }
  check_same_shape("threefry", "combine counters of", in.shape(0), "with keys of", in.shape(1));
  return same_as_operand(in);
}

Metadata infer_node(const Custom& node, const Operands& in) {
  if (node.op_name.empty())
    user_error(ErrorKind::Value, "custom: cannot make an operation (its name is empty)");
  check_sizes("custom", in.declared.shape);
  return in.declared;
}

Metadata infer_node(const Host_Callback& node, const Operands& in) {
  if (node.name.empty())
    user_error(ErrorKind::Value, "host_callback: cannot call a function (its name is empty)");
  if (node.call < 0 || node.result < 0)
    user_error(ErrorKind::Value, "host_callback: cannot be result ", node.result, " of call ",
               node.call, " (both count from 0)");
  check_constant("host_callback", in.declared.shape);
  if (node.rows) {
    const int64_t most = in.size() == 0 ? 0 : static_cast<int64_t>(in.shape(0).size());
    if (*node.rows < 0 || *node.rows > most ||
        *node.rows > static_cast<int64_t>(in.declared.shape.size()))
      user_error(ErrorKind::Value, "host_callback: cannot call ", node.name, " by ", *node.rows,
                 " axes (operand 0 has ", most, ", the result ", in.declared.shape.size(), ")");
    for (int64_t i = 0; i < *node.rows; ++i)
      if (in.shape(0)[i].constant() != in.declared.shape[i].constant())
        user_error(ErrorKind::Value, "host_callback: cannot call ", node.name, " by axis ", i,
                   " (operand 0 has ", in.shape(0)[i].constant(), " elements, the result ",
                   in.declared.shape[i].constant(), ")");
  }
  for (size_t i = 0; i < in.size(); ++i) check_constant("host_callback", in.shape(i));
  for (size_t i = 0; i < in.size(); ++i)
    if (max_elements(in.shape(i)) == 0)
      user_error(ErrorKind::Value, "host_callback: cannot pass ", shape_text(in.shape(i)), " to ",
                 node.name, " (operand ", i, " has no elements)");
  check_sizes("host_callback", in.declared.shape);
  return in.declared;
}

Metadata infer_node(const Noop&, const Operands& in) {
  return in.size() == 0 ? no_value() : same_as_operand(in);
}

// The device of the operands, as far as they name one. They must agree.
std::optional<std::string> common_device(const char* op, const Operands& in) {
  const std::optional<std::string>* first = nullptr;
  for (size_t i = 0; i < in.size(); ++i) {
    if (!in[i].device) continue;
    if (!first) first = &in[i].device;
    if (**first != *in[i].device)
      user_error(ErrorKind::Value, op, ": cannot combine an array on ", **first, " with one on ",
                 *in[i].device, " (operand ", i, ")\nhint: copy one of them to the other's device");
  }
  return first ? *first : std::nullopt;
}

// Kinds whose result's device does not follow from the operands'.
bool has_own_device(NodeKind kind) {
  return kind == NodeKind::Buffer || kind == NodeKind::Placeholder || kind == NodeKind::Copy ||
         kind == NodeKind::Sink || kind == NodeKind::End_Loop || kind == NodeKind::Device ||
         kind == NodeKind::Multi || kind == NodeKind::Custom || kind == NodeKind::Host_Callback;
}

void check_count(const char* op, NodeKind kind, size_t count) {
  static constexpr int kLimits[][2] = {
#define RUNE_NODE(Name, text, least, most, dialect) {least, most},
      RUNE_GRAPH_NODES(RUNE_NODE)
#undef RUNE_NODE
  };
  const auto [least, most] = kLimits[static_cast<int>(kind)];
  const int found = static_cast<int>(count);
  if (found >= least && (most < 0 || found <= most)) return;
  const std::string limits = least == most ? concat(least)
                             : most < 0    ? concat("at least ", least)
                                           : concat(least, " to ", most);
  user_error(ErrorKind::Value, op, ": cannot take ", count, " operands (expected ", limits, ")");
}

// Calls the overload for the payload: one of this file, or one of infer_detail.h, which is found by
// the namespace of its arguments. A kind without an overload does not compile.
Metadata infer_payload(const Payload& payload, const Operands& in) {
  return std::visit([&](const auto& node) { return infer_node(node, in); }, payload);
}

}  // namespace

}  // namespace detail

Ints free_axes(const Contract& contract, size_t operand, size_t rank) {
  std::vector<bool> is_paired(rank);
  for (const Pairs* pairs : {&contract.batch, &contract.contract})
    for (const auto& [of_a, of_b] : *pairs) is_paired[operand == 0 ? of_a : of_b] = true;
  Ints axes;
  for (size_t d = 0; d < rank; ++d)
    if (!is_paired[d]) axes.push_back(static_cast<int64_t>(d));
  return axes;
}

Metadata infer(const Payload& payload, std::span<const Metadata* const> operands,
               const Metadata& declared) {
  const NodeKind kind = static_cast<NodeKind>(payload.index());
  const char* op = name_of(kind);
  if (const auto* node = std::get_if<Binop>(&payload)) op = rune::name_of(node->op);
  if (const auto* node = std::get_if<Unary>(&payload)) op = rune::name_of(node->op);
  if (const auto* node = std::get_if<Ternary>(&payload)) op = rune::name_of(node->op);
  detail::check_count(op, kind, operands.size());
  const detail::Operands in{operands, declared};
  Metadata meta = detail::infer_payload(payload, in);
  if (!detail::has_own_device(kind)) meta.device = detail::common_device(op, in);
  return meta;
}

}  // namespace rune::graph
