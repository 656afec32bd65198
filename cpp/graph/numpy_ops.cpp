#include "graph/numpy_ops.h"

#include <algorithm>

namespace rune::graph {

namespace {

DType default_dtype(Kind weak) {
  switch (weak) {
    case Kind::Bool: return DType::Bool;
    case Kind::Int:
    case Kind::Uint: return DType::Int64;
    case Kind::Float: return DType::Float64;
  }
  RUNE_UNREACHABLE();
}

__int128 lowest_integer(DType dtype) {
  return kind(dtype) == Kind::Int ? -(__int128{1} << (bits_of(dtype) - 1)) : 0;
}

__int128 highest_integer(DType dtype) {
  if (is_bool(dtype)) return 1;
  return (__int128{1} << (bits_of(dtype) - (kind(dtype) == Kind::Int ? 1 : 0))) - 1;
}

std::string integer_text(__int128 value) {
  if (value > (__int128{1} << 90) || value < -(__int128{1} << 90)) return "beyond 64 bits";
  const bool negative = value < 0;
  if (negative) value = -value;
  std::string digits;
  do {
    digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(value % 10)));
    value /= 10;
  } while (value);
  return negative ? '-' + digits : digits;
}

Scalar scalar_of(const Literal& literal, DType dtype) {
  if (is_float(dtype)) return Scalar::of(dtype, literal.real);
  if (literal.kind == Kind::Float) return Scalar::of(DType::Float64, literal.real).cast(dtype);
  if (is_bool(dtype)) return Scalar::of(dtype, literal.integer != 0);
  if (literal.integer < lowest_integer(dtype) || literal.integer > highest_integer(dtype))
    throw OverflowError(concat("Python integer ", integer_text(literal.integer),
                               " out of bounds for ", numpy_name(dtype)));
  return kind(dtype) == Kind::Uint ? Scalar::of(dtype, static_cast<uint64_t>(literal.integer))
                                   : Scalar::of(dtype, static_cast<int64_t>(literal.integer));
}

}  // namespace

Literal Literal::of(bool value) {
  return {Kind::Bool, value, value ? 1.0 : 0.0};
}
Literal Literal::of(int64_t value) {
  return {Kind::Int, value, static_cast<double>(value)};
}
Literal Literal::of(double value) {
  return {Kind::Float, 0, value};
}

Operand NumpyBuilder::input(DType dtype, Shape shape, std::optional<Kind> weak) {
  Operand result = b_.placeholder(dtype, std::move(shape));
  result.weak = weak;
  return result;
}

Dim NumpyBuilder::define_size(std::string name, int64_t low, int64_t high) {
  const SymVar var{std::move(name), low, high};
  sizes_[var.name] = b_.add(Define_Var{var}, {});
  return Dim(var);
}

Operand NumpyBuilder::size_of(const Dim& size) {
  if (size.is_constant()) return Literal::of(size.constant());
  const auto number = [&](int64_t n) { return b_.constant(Scalar::of(DType::Int64, n)); };
  Value sum;
  for (const Dim::Term& term : size.terms()) {
    Value part = sizes_.at(term.var.name);
    if (term.coefficient != 1) part = b_.alu(AluOp::Mul, {part, number(term.coefficient)});
    sum = sum.valid() ? b_.alu(AluOp::Add, {sum, part}) : part;
  }
  if (size.offset() != 0) sum = b_.alu(AluOp::Add, {sum, number(size.offset())});
  ranges_[sum] = {size.least(), size.bound()};
  return Operand(sum, Kind::Int);
}

Shape NumpyBuilder::shape(const Operand& x) const {
  return x.literal ? Shape{} : b_.shape(x.value);
}

DType NumpyBuilder::dtype(const Operand& x) const {
  return x.literal ? default_dtype(*x.weak) : b_.dtype(x.value);
}

DType NumpyBuilder::result_type(const Operands& operands) const {
  // Floats first: int16, uint16 and float32 give float32, though int16 and uint16 alone give int32.
  std::optional<DType> strong;
  std::optional<Kind> weak;
  for (const bool floats : {true, false})
    for (const Operand& x : operands) {
      if (x.weak || is_float(dtype(x)) != floats) continue;
      strong = strong ? promote(*strong, dtype(x)) : dtype(x);
    }
  for (const Operand& x : operands) {
    if (!x.weak) continue;
    if (!weak || static_cast<int>(*x.weak) > static_cast<int>(*weak)) weak = x.weak;
  }
  if (!strong) return default_dtype(*weak);
  return weak ? promote_weak(*strong, *weak) : *strong;
}

DType NumpyBuilder::common_type(const char* op, const Operands& operands) const {
  const auto is_bfloat16 = [&](const Operand& x) { return !x.weak && dtype(x) == DType::Bfloat16; };
  if (std::none_of(operands.begin(), operands.end(), is_bfloat16)) return result_type(operands);
  const auto refuse = [&](const char* what) {
    user_error(ErrorKind::Type, op, ": cannot combine bfloat16 and ", what,
               " (NumPy has no common dtype for all orders)\nhint: convert one with astype");
  };
  bool alone = true, with_number = false, with_float = false;
  for (const Operand& x : operands) {
    const DType d = dtype(x);
    if (x.weak) {
      with_number |= x.weak != Kind::Bool;
      with_float |= x.weak == Kind::Float;
    } else if (d != DType::Bfloat16) {
      alone = false;
      if (bits_of(d) == 16 || (is_integer(d) && bits_of(d) > 8)) refuse(numpy_name(d));
    }
  }
  if (with_number && !alone) refuse("a Python number and another dtype");
  return with_float ? DType::Float64 : result_type(operands);
}

DType NumpyBuilder::float_type(const Operands& operands) const {
  // Each operand must be castable to the loop's dtype, which may be less than what their common
  // dtype needs: int8 and uint8 have float16 loops, int16 alone float32. Beside bfloat16 they have
  // bfloat16 loops.
  const DType common = result_type(operands);
  if (common == DType::Bfloat16) return common;
  std::optional<DType> result;
  for (const Operand& x : operands) {
    if (x.weak) return float_of(common);
    result = result ? promote(*result, float_of(dtype(x))) : float_of(dtype(x));
  }
  return *result;
}

Value NumpyBuilder::value_of(const Operand& x) {
  return x.literal ? as(x, default_dtype(*x.weak), "value") : x.value;
}

Value NumpyBuilder::as(const Operand& x, DType dtype, const char* op) {
  if (x.literal) return b_.constant(scalar_of(*x.literal, dtype));
  const bool narrows = x.weak == Kind::Int && is_integer(dtype) && dtype != DType::Int64;
  if (narrows) {
    const auto known = ranges_.find(x.value);
    if (known != ranges_.end() && known->second.first >= lowest_integer(dtype) &&
        known->second.second <= highest_integer(dtype))
      return b_.cast(x.value, dtype);
    const auto* placeholder = b_[x.value].as<Placeholder>();
    if (!placeholder)
      user_error(ErrorKind::Unsupported, op, ": cannot convert a computed Python int to ",
                 numpy_name(dtype), " (whether it is out of bounds is not known while tracing)",
                 "\nhint: convert it with np.", numpy_name(dtype), "(...) before the call");
    const ScalarGuard guard{ScalarGuard::Check::FitsDtype, placeholder->index, dtype};
    if (std::find(guards_.begin(), guards_.end(), guard) == guards_.end()) guards_.push_back(guard);
  }
  return b_.cast(x.value, dtype);
}

Value NumpyBuilder::to_bool(const Operand& x) {
  const Value v = value_of(x);
  if (is_bool(b_.dtype(v))) return v;
  return elementwise(AluOp::Cmpne, {v, scalar(b_.dtype(v), 0)});
}

Value NumpyBuilder::broadcast(Value x, const Shape& shape) {
  const Shape& from = b_.shape(x);
  if (from == shape) return x;
  Shape padded(shape.size() - from.size(), 1);
  padded.insert(padded.end(), from.begin(), from.end());
  return b_.expand(b_.reshape(x, std::move(padded)), shape);
}

std::vector<Value> NumpyBuilder::broadcast_all(const char* op, std::vector<Value> values) {
  Shape shape;
  for (const Value v : values) shape = broadcast_shapes(op, shape, b_.shape(v));
  for (Value& v : values) v = broadcast(v, shape);
  return values;
}

Value NumpyBuilder::elementwise(AluOp op, std::vector<Value> values) {
  return b_.alu(op, broadcast_all(info(op).text, std::move(values)));
}

Value NumpyBuilder::scalar(DType dtype, double value) {
  return b_.constant(Scalar::of(DType::Float64, value).cast(dtype));
}

int64_t NumpyBuilder::axis_of(const char* op, int64_t axis, int64_t rank) const {
  if (axis < -rank || axis >= rank)
    throw AxisError(
        concat(op, ": cannot use axis ", axis, " of an array with ", rank, " dimensions"));
  return axis < 0 ? axis + rank : axis;
}

Ints NumpyBuilder::normalize_axes(const char* op, const Axes& axes, int64_t rank) const {
  Ints result;
  if (!axes) {
    for (int64_t i = 0; i < rank; ++i) result.push_back(i);
    return result;
  }
  for (const int64_t axis : *axes) result.push_back(axis_of(op, axis, rank));
  std::sort(result.begin(), result.end());
  if (std::adjacent_find(result.begin(), result.end()) != result.end())
    user_error(ErrorKind::Value, op, ": cannot use axes ", shape_text(*axes), " (duplicate axis)");
  return result;
}

Operand NumpyBuilder::where(const Operand& condition, const Operand& x, const Operand& y) {
  const DType dtype = common_type("where", {x, y});
  const auto converted = [&](const Operand& v) {
    // NumPy makes an int64 or uint64 of a Python int, which then wraps.
    if (!v.literal || v.literal->kind != Kind::Int || !is_integer(dtype))
      return as(v, dtype, "where");
    const bool large = v.literal->integer > highest_integer(DType::Int64);
    return b_.constant(scalar_of(*v.literal, large ? DType::Uint64 : DType::Int64).cast(dtype));
  };
  return elementwise(AluOp::Where, {to_bool(condition), converted(x), converted(y)});
}

Operand NumpyBuilder::clip(const Operand& x, const std::optional<Operand>& low,
                           const std::optional<Operand>& high) {
  Operand result = x;
  if (!low && !high) return result;
  Operands all{x};
  if (low) all.push_back(*low);
  if (high) all.push_back(*high);
  // NumPy's clip is one ufunc: its dtype is that of all three operands. It has no loop of bfloat16.
  DType dtype = result_type(all);
  if (dtype == DType::Bfloat16 && low && high) dtype = DType::Float32;
  Value value = as(x, dtype, "clip");
  if (low) value = elementwise(AluOp::Max, {value, as(*low, dtype, "clip")});
  if (high) value = elementwise(AluOp::Min, {value, as(*high, dtype, "clip")});
  return value;
}

Operand NumpyBuilder::astype(const Operand& x, DType dtype) {
  if (x.literal) return as(x, dtype, "astype");
  return b_.cast(x.value, dtype);
}

Operand NumpyBuilder::full(const Shape& shape, const Operand& fill, std::optional<DType> dtype) {
  for (const Dim& size : shape)
    if (size.least() < 0)
      refuse_sizes({size}, concat("full: cannot make ", shape_text(shape), " (negative size)"));
  const Value value = dtype ? as(fill, *dtype, "full") : value_of(fill);
  broadcast_shapes("full", b_.shape(value), shape);
  return broadcast(value, shape);
}

}  // namespace rune::graph
