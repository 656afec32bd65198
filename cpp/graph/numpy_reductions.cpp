// NumPy's reductions.
#include <algorithm>
#include <cmath>

#include "alu/eval.h"
#include "graph/numpy_ops.h"

namespace rune::graph {

namespace {

bool is_half(DType dtype) {
  return dtype == DType::Float16 || dtype == DType::Bfloat16;
}

// 16-bit floats accumulate in 32 bits.
DType accumulator_of(DType dtype) {
  return is_half(dtype) ? DType::Float32 : dtype;
}

}  // namespace

Value NumpyBuilder::drop_axes(Value x, const Ints& axes) {
  Shape kept;
  for (size_t i = 0, next = 0; i < b_.shape(x).size(); ++i) {
    if (next < axes.size() && axes[next] == static_cast<int64_t>(i))
      ++next;
    else
      kept.push_back(b_.shape(x)[i]);
  }
  return b_.reshape(x, std::move(kept));
}

Value NumpyBuilder::count_along(const Shape& shape, const Ints& axes, DType dtype,
                                double correction) {
  int64_t fixed = 1;
  Value symbolic;
  for (const int64_t axis : axes) {
    const Operand size = size_of(shape[axis]);
    if (size.literal)
      fixed *= shape[axis].constant();
    else
      symbolic = symbolic.valid() ? b_.alu(AluOp::Mul, {symbolic, size.value}) : size.value;
  }
  if (!symbolic.valid())
    return scalar(dtype, std::max(static_cast<double>(fixed) - correction, 0.0));
  const auto number = [&](int64_t n) { return b_.constant(Scalar::of(DType::Int64, n)); };
  Value count = b_.alu(AluOp::Mul, {symbolic, number(fixed)});
  if (correction == 0) return b_.cast(count, dtype);
  if (correction == std::trunc(correction))
    count = b_.alu(AluOp::Sub, {count, number(static_cast<int64_t>(correction))});
  else
    count =
        b_.alu(AluOp::Sub, {b_.cast(count, DType::Float64), scalar(DType::Float64, correction)});
  return b_.cast(b_.alu(AluOp::Max, {count, scalar(b_.dtype(count), 0)}), dtype);
}

Operand NumpyBuilder::reduce(std::string_view name, const Operand& x, const Axes& axes,
                             bool keepdims, std::optional<DType> dtype) {
  const std::string op_name(name);
  Value value = value_of(x);
  const Ints along =
      normalize_axes(op_name.c_str(), axes, static_cast<int64_t>(b_.shape(value).size()));
  ReduceOp op = ReduceOp::Add;
  DType result = b_.dtype(value);
  if (name == "sum" || name == "prod") {
    op = name == "sum" ? ReduceOp::Add : ReduceOp::Prod;
    result = dtype ? *dtype : sum_of(result);
    if (is_bool(result)) {  // addition of bool is or, multiplication is and
      value = to_bool(value);
      op = name == "sum" ? ReduceOp::Max : ReduceOp::Min;
    } else {
      value = b_.cast(value, result);
    }
  } else if (name == "any" || name == "all") {
    op = name == "any" ? ReduceOp::Max : ReduceOp::Min;
    value = to_bool(value);
    result = DType::Bool;
  } else {
    RUNE_CHECK(name == "max" || name == "min", "reduction ", op_name);
    op = name == "max" ? ReduceOp::Max : ReduceOp::Min;
    if (dtype) value = b_.cast(value, result = *dtype);
    for (const int64_t axis : along)
      if (const Dim& size = b_.shape(value)[axis]; size.least() <= 0)
        refuse_sizes(
            {size},
            concat("zero-size array to reduction operation ", name == "max" ? "maximum" : "minimum",
                   " which has no identity (axis ", axis, " has ", size, " elements)"));
  }
  const bool accumulates = op == ReduceOp::Add || op == ReduceOp::Prod;
  if (accumulates) value = b_.cast(value, accumulator_of(result));
  if (!along.empty()) value = b_.reduce(op, value, along);
  if (accumulates) value = b_.cast(value, result);
  return keepdims ? value : drop_axes(value, along);
}

Operand NumpyBuilder::mean(const Operand& x, const Axes& axes, bool keepdims,
                           std::optional<DType> dtype) {
  const DType from = this->dtype(x);
  const DType result = dtype ? *dtype : is_float(from) ? from : DType::Float64;
  const DType compute = accumulator_of(result);
  const Ints along = normalize_axes("mean", axes, static_cast<int64_t>(shape(x).size()));
  const Operand sum = reduce("sum", b_.cast(value_of(x), compute), along, keepdims, compute);
  const auto count = [&](DType in) { return count_along(shape(x), along, in); };
  if (!is_float(compute))  // NumPy divides the integer sum as floats and casts the quotient back
    return b_.cast(
        elementwise(AluOp::Fdiv, {b_.cast(sum.value, DType::Float64), count(DType::Float64)}),
        result);
  return b_.cast(elementwise(AluOp::Fdiv, {sum.value, count(compute)}), result);
}

Operand NumpyBuilder::variance(const Operand& x, const Axes& axes, bool keepdims,
                               std::optional<DType> dtype, double correction, bool root) {
  const DType from = this->dtype(x);
  const DType result = dtype ? *dtype : is_float(from) ? from : DType::Float64;
  if (!is_float(result))
    user_error(ErrorKind::Unsupported, "var: cannot compute in ", numpy_name(result));
  const DType compute = accumulator_of(result);
  const Ints along = normalize_axes("var", axes, static_cast<int64_t>(shape(x).size()));
  const Value value = b_.cast(value_of(x), compute);
  const Operand center = mean(value, along, true, compute);
  const Value deviation = elementwise(AluOp::Sub, {value, center.value});
  const Value squares = b_.alu(AluOp::Mul, {deviation, deviation});
  const Value sum = reduce("sum", squares, along, keepdims).value;
  // The mean is rounded: what the deviations then add up to is taken out (Chan, Golub and LeVeque
  // 1983). Of squares that overflow nothing is taken.
  const Value rest = reduce("sum", deviation, along, keepdims).value;
  const Value share = elementwise(AluOp::Fdiv, {rest, count_along(shape(x), along, compute)});
  const Value exact = b_.alu(AluOp::Sub, {sum, b_.alu(AluOp::Mul, {rest, share})});
  const Value least = elementwise(AluOp::Max, {exact, scalar(compute, 0)});
  const Value moment = b_.alu(AluOp::Where, {b_.alu(AluOp::Isinf, {sum}), sum, least});
  const Value divisor = count_along(shape(x), along, compute, correction);
  Value var = elementwise(AluOp::Fdiv, {moment, divisor});
  if (root) var = b_.alu(AluOp::Sqrt, {var});
  return b_.cast(var, result);
}

Operand NumpyBuilder::arg_reduce(bool largest, const Operand& x, std::optional<int64_t> axis,
                                 bool keepdims, const Operand& positions) {
  const char* name = largest ? "argmax" : "argmin";
  const Value value = value_of(x);
  const Shape shape = b_.shape(value);
  const Axes axes = axis ? Axes(Ints{*axis}) : std::nullopt;
  const Ints along = normalize_axes(name, axes, static_cast<int64_t>(shape.size()));
  for (const int64_t axis : along)
    if (shape[axis].least() <= 0)
      refuse_sizes({shape[axis]}, concat("attempt to get ", name, " of an empty sequence (axis ",
                                         axis, " has ", shape[axis], " elements)"));
  const Value best = b_.reduce(largest ? ReduceOp::Max : ReduceOp::Min, value, along);
  Value hit = elementwise(AluOp::Cmpeq, {value, best});
  // The first NaN wins; it equals nothing, and makes the extremum NaN.
  if (is_float(b_.dtype(value))) hit = b_.alu(AluOp::Or, {hit, b_.alu(AluOp::Isnan, {value})});
  const Value index = value_of(positions);
  const Value none = b_.constant(identity(ReduceOp::Min, b_.dtype(index)));
  const Value candidates = elementwise(AluOp::Where, {hit, index, none});
  const Value first = b_.cast(b_.reduce(ReduceOp::Min, candidates, along), DType::Int64);
  return keepdims ? first : drop_axes(first, along);
}

Operand NumpyBuilder::count_to(const Dim& size) {
  const Value one = b_.constant(Scalar::of(DType::Int64, int64_t{1}));
  const Value counts = b_.scan(ReduceOp::Add, broadcast(one, {size}), 0);
  return elementwise(AluOp::Sub, {counts, one});
}

Operand NumpyBuilder::threefry(const Operand& counter, const Operand& key) {
  const Value pairs = value_of(counter);
  return b_.add(Threefry{}, {pairs, broadcast(value_of(key), b_.shape(pairs))});
}

}  // namespace rune::graph
