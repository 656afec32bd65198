#include "graph/numpy/operands.h"

#include <algorithm>

#include "graph/numpy/complex.h"
#include "graph/numpy/integer_ranges.h"
#include "graph/numpy/loops.h"

namespace rune::graph::numpy {

namespace {

DType default_dtype(Kind weak) {
  switch (weak) {
    case Kind::Bool: return DType::Bool;
    case Kind::Int:
    case Kind::Uint: return DType::Int64;
    case Kind::Float: return DType::Float64;
    case Kind::Complex: return DType::Complex128;
  }
  RUNE_UNREACHABLE();
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
  if (literal.kind == Kind::Float || literal.kind == Kind::Complex)
    return Scalar::of(DType::Float64, literal.real).cast(dtype);
  if (is_bool(dtype)) return Scalar::of(dtype, literal.integer != 0);
  if (literal.integer < lowest_integer(dtype) || literal.integer > highest_integer(dtype))
    throw OverflowError(concat("Python integer ", integer_text(literal.integer),
                               " out of bounds for ", numpy_name(dtype)));
  return kind(dtype) == Kind::Uint ? Scalar::of(dtype, static_cast<uint64_t>(literal.integer))
                                   : Scalar::of(dtype, static_cast<int64_t>(literal.integer));
}

// Assumes that a computed Python int fits an integer dtype. If it does not, Python raises.
void assume_fits(TracedGraph& t, Value number, DType dtype) {
  const auto bound = [&](__int128 n) {
    return t.constant(Scalar::of(DType::Int64, static_cast<int64_t>(n)));
  };
  const __int128 most = std::min<__int128>(highest_integer(dtype), INT64_MAX);
  const Value low = bound(lowest_integer(dtype)), high = bound(most);
  const Value wide = t.cast(number, DType::Int64);
  const Value kept = t.alu(AluOp::Min, {t.alu(AluOp::Max, {wide, low}), high});
  assume(t, {t.alu(AluOp::Cmpeq, {kept, wide})});
}

[[noreturn]] void refuse_order(const char* op, const Dim& a, const Dim& b) {
  refuse_sizes({a, b}, concat(op, ": cannot tell the smaller of ", a, " and ", b));
}

}  // namespace

__int128 lowest_integer(DType dtype) {
  return kind(dtype) == Kind::Int ? -(__int128{1} << (bits_of(dtype) - 1)) : 0;
}

__int128 highest_integer(DType dtype) {
  if (is_bool(dtype)) return 1;
  return (__int128{1} << (bits_of(dtype) - (kind(dtype) == Kind::Int ? 1 : 0))) - 1;
}

Dim smaller(const char* op, const Dim& a, const Dim& b) {
  if (always_at_most(a, b)) return a;
  if (!always_at_most(b, a)) refuse_order(op, a, b);
  return b;
}

Dim larger(const char* op, const Dim& a, const Dim& b) {
  return smaller(op, a, b) == a ? b : a;
}

Dim clamp(const char* op, const Dim& value, const Dim& low, const Dim& high) {
  return smaller(op, larger(op, value, low), high);
}

Dim from_end(const Dim& position, const Dim& size) {
  if (position.least() >= 0) return position;
  if (position.bound() < 0) return position + size;
  refuse_sizes({position}, concat("index: cannot tell whether ", position, " is negative"));
}

Literal Literal::of(bool value) {
  return {Kind::Bool, value, value ? 1.0 : 0.0};
}
Literal Literal::of(int64_t value) {
  return {Kind::Int, value, static_cast<double>(value)};
}
Literal Literal::of(double value) {
  return {Kind::Float, 0, value};
}
Literal Literal::of(std::complex<double> value) {
  return {Kind::Complex, 0, value.real(), value.imag()};
}

Operand input(TracedGraph& t, DType dtype, Shape shape, std::optional<Kind> weak) {
  Operand result = t.placeholder(dtype, std::move(shape));
  result.weak = weak;
  return result;
}

Dim define_size(TracedGraph& t, std::string name, int64_t low, int64_t high) {
  const SymVar var{std::move(name), low, high};
  t.sizes[var.name] = t.add(Define_Var{var}, {});
  return Dim(var);
}

Operand size_value(TracedGraph& t, const Dim& size) {
  if (size.is_constant()) return Literal::of(size.constant());
  const auto number = [&](int64_t n) { return t.constant(Scalar::of(DType::Int64, n)); };
  Value sum;
  for (const Dim::Term& term : size.terms()) {
    Value part = t.sizes.at(term.var.name);
    if (term.coefficient != 1) part = t.alu(AluOp::Mul, {part, number(term.coefficient)});
    sum = sum.valid() ? t.alu(AluOp::Add, {sum, part}) : part;
  }
  if (size.offset() != 0) sum = t.alu(AluOp::Add, {sum, number(size.offset())});
  t.ranges[sum] = {size, size};
  return Operand(sum, Kind::Int);
}

void assume_range(TracedGraph& t, const Operand& x, const Dim& low, const Dim& high) {
  t.ranges[x.value] = {low, high};
  t.integer_ranges.erase(x.value.id);
}

Shape shape_of(const TracedGraph& t, const Operand& x) {
  return x.literal ? Shape{} : t.shape(x.value);
}

DType dtype_of(const TracedGraph& t, const Operand& x) {
  return x.literal ? default_dtype(*x.weak) : t.dtype(x.value);
}

namespace {

DType type_of_result(const TracedGraph& t, const Operands& operands) {
  // Floats first: int16, uint16 and float32 give float32, though int16 and uint16 alone give int32.
  std::optional<DType> strong;
  std::optional<Kind> weak;
  for (const bool floats : {true, false})
    for (const Operand& x : operands) {
      if (x.weak || is_inexact(dtype_of(t, x)) != floats) continue;
      strong = strong ? promote(*strong, dtype_of(t, x)) : dtype_of(t, x);
    }
  for (const Operand& x : operands) {
    if (!x.weak) continue;
    if (!weak || static_cast<int>(*x.weak) > static_cast<int>(*weak)) weak = x.weak;
  }
  if (!strong) return default_dtype(*weak);
  return weak ? promote_weak(*strong, *weak) : *strong;
}

// The operands, if those that may be Python's numbers are Python's.
Operands as_pythons(const TracedGraph& t, Operands operands) {
  for (Operand& x : operands)
    if (const auto kind = unsure_kind(t, x)) x.weak = kind;
  return operands;
}

bool any_unsure(const TracedGraph& t, const Operands& operands) {
  return !t.unsure.empty() && std::any_of(operands.begin(), operands.end(), [&](const Operand& x) {
    return unsure_kind(t, x).has_value();
  });
}

}  // namespace

void mark_unsure(TracedGraph& t, const Operand& x, Kind kind, const Operand& is_python) {
  t.unsure[x.value] = {kind, value_of(t, is_python)};
}

std::optional<Kind> unsure_kind(const TracedGraph& t, const Operand& x) {
  const auto found = t.unsure.find(x.value);
  if (x.literal || x.weak || found == t.unsure.end()) return std::nullopt;
  return found->second.kind;
}

Operand is_python(TracedGraph& t, const Operand& x) {
  const auto found = t.unsure.find(x.value);
  if (!x.literal && !x.weak && found != t.unsure.end()) return {found->second.is_python};
  return {t.constant(Scalar::of(DType::Bool, x.weak.has_value()))};
}

DType result_type(const TracedGraph& t, const Operands& operands) {
  const DType result = type_of_result(t, operands);
  if (any_unsure(t, operands)) {
    const Operands others = as_pythons(t, operands);
    const bool all_weak = std::all_of(others.begin(), others.end(),
                                      [](const Operand& x) { return x.weak.has_value(); });
    if (!all_weak && type_of_result(t, others) != result)
      user_error(ErrorKind::Undecided,
                 "operand: cannot tell whether a loop's result is NumPy's number or Python's");
  }
  return result;
}

DType common_type(const TracedGraph& t, const Operands& operands) {
  const DType result = result_type(t, operands);
  const auto is_float = [](const Operand& x) { return x.weak == Kind::Float; };
  if (result != DType::Bfloat16 || std::none_of(operands.begin(), operands.end(), is_float))
    return result;
  if (operands.size() > 2)
    user_error(ErrorKind::Unsupported,
               "result_type: cannot trace bfloat16 and a Python float among several operands (what"
               " they give depends on their order)");
  return is_float(operands[0]) ? DType::Float32 : result;
}

DType float_type(const TracedGraph& t, const Operands& operands) {
  // Each operand must be castable to the loop's dtype. The loop's dtype may be narrower than the
  // common dtype suggests: int8 and uint8 together have float16 loops, although int16 alone has
  // float32. With bfloat16 they have bfloat16 loops.
  const DType common = result_type(t, operands);
  if (common == DType::Bfloat16) return common;
  std::optional<DType> result;
  for (const Operand& x : operands) {
    if (x.weak) return float_of(common);
    result = result ? promote(*result, float_of(dtype_of(t, x))) : float_of(dtype_of(t, x));
  }
  return *result;
}

Value value_of(TracedGraph& t, const Operand& x) {
  return x.literal ? convert(t, x, default_dtype(*x.weak)) : x.value;
}

Value convert(TracedGraph& t, const Operand& x, DType dtype) {
  if (x.literal && is_complex(dtype))
    return complex_constant(t, dtype, x.literal->real, x.literal->imag);
  if (x.literal) return t.constant(scalar_of(*x.literal, dtype));
  const bool narrows = x.weak == Kind::Int && is_integer(dtype) && dtype != DType::Int64;
  if (narrows) {
    const std::optional<IntegerRange> known = integer_range(t, x.value);
    if (known && known->low >= lowest_integer(dtype) && known->high <= highest_integer(dtype))
      return t.cast(x.value, dtype);
    const auto* placeholder = t[x.value].as<Placeholder>();
    if (!placeholder) {
      assume_fits(t, x.value, dtype);
      return t.cast(x.value, dtype);
    }
    const ScalarGuard guard{ScalarGuard::Check::FitsDtype, placeholder->index, dtype};
    if (!contains(t.guards, guard)) t.guards.push_back(guard);
  }
  return cast(t, x.value, dtype);
}

Value cast(TracedGraph& t, Value x, DType dtype) {
  if (t.dtype(x) != DType::Bfloat16 || !is_integer(dtype)) return t.cast(x, dtype);
  const Value wide = t.cast(x, DType::Float32);
  const auto bound = [&](__int128 n) { return scalar(t, DType::Float32, static_cast<double>(n)); };
  const Value zero = scalar(t, DType::Float32, 0);
  const Value below = elementwise(t, AluOp::Cmplt, {wide, bound(lowest_integer(dtype))});
  const Value fits = elementwise(t, AluOp::Cmplt, {wide, bound(highest_integer(dtype) + 1)});
  const Value most = elementwise(t, AluOp::Where, {fits, wide, zero});
  return t.cast(elementwise(t, AluOp::Where, {below, zero, most}), dtype);
}

Value to_bool(TracedGraph& t, const Operand& x) {
  const Value v = value_of(t, x);
  if (is_bool(t.dtype(v))) return v;
  if (is_complex(t.dtype(v))) return complex_is_nonzero(t, v);
  return elementwise(t, AluOp::Cmpne, {v, scalar(t, t.dtype(v), 0)});
}

Value broadcast(TracedGraph& t, Value x, const Shape& shape) {
  const Shape& from = t.shape(x);
  if (from == shape) return x;
  Shape padded(shape.size() - from.size(), 1);
  padded.insert(padded.end(), from.begin(), from.end());
  return t.expand(t.reshape(x, std::move(padded)), shape);
}

std::vector<Value> broadcast_all(TracedGraph& t, const char* op, std::vector<Value> values) {
  const auto is_first = [&](Value v) { return t.shape(v) == t.shape(values[0]); };
  if (std::all_of(values.begin(), values.end(), is_first)) return values;
  Shape shape;
  for (const Value v : values) shape = broadcast_shapes(op, shape, t.shape(v));
  for (Value& v : values) v = broadcast(t, v, shape);
  return values;
}

Value elementwise(TracedGraph& t, AluOp op, std::vector<Value> values) {
  return t.alu(op, broadcast_all(t, info(op).text, std::move(values)));
}

Value scalar(TracedGraph& t, DType dtype, double value) {
  return t.constant(Scalar::of(DType::Float64, value).cast(dtype));
}

int64_t axis_of(const char* op, int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    throw AxisError(
        concat(op, ": cannot use axis ", axis, " of an array with ", rank, " dimensions"));
  return axis < 0 ? axis + rank : axis;
}

Ints normalize_axes(const char* op, const Axes& axes, int64_t rank) {
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

Value drop_axes(TracedGraph& t, Value x, const Ints& axes) {
  Shape kept;
  for (size_t i = 0, next = 0; i < t.shape(x).size(); ++i) {
    if (next < axes.size() && axes[next] == static_cast<int64_t>(i))
      ++next;
    else
      kept.push_back(t.shape(x)[i]);
  }
  return t.reshape(x, std::move(kept));
}

bool same(const TracedGraph& t, const Operand& a, const Operand& b) {
  if (a.literal || b.literal) return false;
  std::set<std::pair<Value, Value>> seen;
  std::vector<std::pair<Value, Value>> open{{a.value, b.value}};
  while (!open.empty()) {
    const auto [x, y] = open.back();
    open.pop_back();
    if (x == y || !seen.emplace(x, y).second) continue;
    const Node &p = t[x], &q = t[y];
    if (!(p.payload == q.payload) || p.inputs.size() != q.inputs.size()) return false;
    for (size_t i = 0; i < p.inputs.size(); ++i) open.emplace_back(p.inputs[i], q.inputs[i]);
  }
  return true;
}

}  // namespace rune::graph::numpy
