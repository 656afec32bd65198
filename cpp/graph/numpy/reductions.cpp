#include "graph/numpy/reductions.h"

namespace rune::graph::numpy {

namespace {

bool is_half(DType dtype) {
  return dtype == DType::Float16 || dtype == DType::Bfloat16;
}

// The dtype in which a reduction accumulates: 32 bits for 16-bit floats.
DType accumulator_of(DType dtype) {
  return is_half(dtype) ? DType::Float32 : dtype;
}

// Only sums can reduce complex numbers, by their real and imaginary parts.
void check_complex(const TracedGraph& t, const char* name, ReduceOp op, Value x) {
  if (is_complex(t.dtype(x)) && op != ReduceOp::Add)
    user_error(ErrorKind::Unsupported, name, ": cannot trace it on ", numpy_name(t.dtype(x)));
}

}  // namespace

Operand reduce(TracedGraph& t, std::string_view name, const Operand& x, const Axes& axes,
               bool keepdims, std::optional<DType> dtype) {
  const std::string op_name(name);
  Value value = value_of(t, x);
  const Ints along =
      normalize_axes(op_name.c_str(), axes, static_cast<int64_t>(t.shape(value).size()));
  ReduceOp op = ReduceOp::Add;
  DType result = t.dtype(value);
  if (name == "sum" || name == "prod") {
    op = name == "sum" ? ReduceOp::Add : ReduceOp::Prod;
    result = dtype ? *dtype : sum_of(result);
    if (is_bool(result)) {  // addition of bool is `or`, multiplication is `and`
      value = to_bool(t, value);
      op = name == "sum" ? ReduceOp::Max : ReduceOp::Min;
    } else {
      value = t.cast(value, result);
    }
  } else if (name == "any" || name == "all") {
    op = name == "any" ? ReduceOp::Max : ReduceOp::Min;
    value = to_bool(t, value);
    result = DType::Bool;
  } else {
    RUNE_CHECK(name == "max" || name == "min", "reduction ", op_name);
    op = name == "max" ? ReduceOp::Max : ReduceOp::Min;
    if (dtype) value = t.cast(value, result = *dtype);
    for (const int64_t axis : along)
      if (const Dim& size = t.shape(value)[axis]; size.least() <= 0)
        refuse_sizes(
            {size},
            concat("zero-size array to reduction operation ", name == "max" ? "maximum" : "minimum",
                   " which has no identity (axis ", axis, " has ", size, " elements)"));
  }
  check_complex(t, op_name.c_str(), op, value);
  const bool accumulates = op == ReduceOp::Add || op == ReduceOp::Prod;
  if (accumulates) value = t.cast(value, accumulator_of(result));
  if (!along.empty()) value = t.reduce(op, value, along);
  if (accumulates) value = t.cast(value, result);
  return keepdims ? value : drop_axes(t, value, along);
}

Operand scan(TracedGraph& t, ReduceOp op, const Operand& x, int64_t axis) {
  const Value value = value_of(t, x);
  check_complex(t, name_of(op), op, value);
  return t.scan(op, value, axis);
}

Operand threefry(TracedGraph& t, const Operand& counter, const Operand& key) {
  const Value pairs = value_of(t, counter);
  return t.add(Threefry{}, {pairs, broadcast(t, value_of(t, key), t.shape(pairs))});
}

}  // namespace rune::graph::numpy
