#include "graph/numpy/index_bounds.h"

#include <numeric>
#include <optional>

#include "graph/numpy/integer_ranges.h"
#include "graph/numpy/loops.h"

namespace rune::graph::numpy {

namespace {

// If an integer is at most this, the sum and the difference with a size still fit an int64.
constexpr int64_t kMostOfSize = int64_t{1} << 62;

// A 0-d integer as int64, clipped to `low` and `high`.
Value clipped(TracedGraph& t, Value at, int64_t low, int64_t high) {
  const std::optional<IntegerRange> range = integer_range(t, at);
  Value result = t.cast(at, DType::Int64);
  if (!range || range->low < low)
    result = t.alu(AluOp::Max, {result, t.constant(Scalar::of(DType::Int64, low))});
  if (!range || range->high > high)
    result = t.alu(AluOp::Min, {result, t.constant(Scalar::of(DType::Int64, high))});
  return result;
}

void check_bindable(TracedGraph& t, Value at) {
  if (t.dtype(at) == DType::Uint64)
    user_error(ErrorKind::Unsupported, "index: cannot trace an index of uint64 in a loop");
}

// A sum as a value and the constants that are added to it.
std::pair<Value, int64_t> without_constants(const TracedGraph& t, Value sum) {
  int64_t constants = 0;
  while (const auto* op = t[sum].as<Binop>()) {
    if (op->op != AluOp::Add && op->op != AluOp::Sub) break;
    const std::vector<Value>& inputs = t[sum].inputs;
    const bool is_first = op->op == AluOp::Add && t[inputs[0]].as<Const_Scalar>();
    const auto* constant = t[inputs[is_first ? 0 : 1]].as<Const_Scalar>();
    if (!constant) break;
    const int64_t number = constant->value.as_int64();
    if (number <= -kMostOfSize / 64 || number >= kMostOfSize / 64) break;
    constants += op->op == AluOp::Add ? number : -number;
    sum = inputs[is_first ? 1 : 0];
  }
  return {sum, constants};
}

}  // namespace

void check_indices(TracedGraph& t, Value at, int64_t axis, const Dim& size) {
  if (!t.checked.emplace(at, axis, size.text()).second) return;
  const DType dtype = t.dtype(at);
  const bool has_sign = kind(dtype) == Kind::Int;
  std::optional<std::pair<Dim, Dim>> range;
  if (const auto known = t.ranges.find(at); known != t.ranges.end())
    range = known->second;
  else if (const auto found = integer_range(t, at);
           found && found->low >= -kMostOfSize && found->high <= kMostOfSize)
    range = {static_cast<int64_t>(found->low), static_cast<int64_t>(found->high)};
  else if (bits_of(dtype) < 64)  // the range of a 64-bit dtype is within no size's bounds
    range = {static_cast<int64_t>(lowest_integer(dtype)),
             static_cast<int64_t>(highest_integer(dtype))};
  const bool is_within =
      range && always_at_most(0, range->first + size) && always_at_most(range->second, size - 1);
  if (is_within || max_elements(t.shape(at)) == 0) return;
  if (!t.open_loops.empty() && !size.is_constant())
    refuse_sizes({size},
                 concat("index: cannot check indices along an axis of size ", size, " in a loop"));
  // As an unsigned number, i + size is less than 2 * size exactly for the signed i in range. So the
  // maximum of these numbers is enough for the check. If an index is out of range, so is the one
  // with the maximum.
  const bool narrow = size.is_constant() && bits_of(dtype) <= 32;
  const DType wide = narrow ? DType::Uint32 : DType::Uint64;
  const auto number = [&](int64_t n) { return t.constant(Scalar::of(DType::Int64, n)); };
  const Value end = t.cast(value_of(t, size_value(t, size)), wide);
  Value position = t.cast(at, wide);
  if (has_sign) position = elementwise(t, AluOp::Add, {position, end});
  Ints axes(t.shape(position).size());
  std::iota(axes.begin(), axes.end(), 0);
  Value most = t.reshape(t.reduce(ReduceOp::Max, position, axes), {});  // 0 if there are none
  const Value limit = has_sign ? t.alu(AluOp::Add, {end, end}) : end;
  const Value bad = t.alu(AluOp::Cmple, {limit, most});
  if (has_sign) {
    most = t.alu(AluOp::Sub, {most, end});
    if (narrow) most = t.cast(most, DType::Int32);
  }
  const Value i = t.cast(most, DType::Int64);
  const Value odd = t.alu(AluOp::Add, {t.alu(AluOp::Mul, {i, number(2)}), number(1)});
  const Value found = t.alu(AluOp::Where, {bad, odd, number(0)});
  const std::optional<Value> indices = t.open_loops.empty() ? std::optional(at) : std::nullopt;
  t.checks.push_back({t.cast(found, DType::Uint64), axis, size, std::nullopt, indices});
}

Value counted_from_end(TracedGraph& t, Value at, const Dim& size) {
  const std::optional<IntegerRange> range = integer_range(t, at);
  const Value number = t.cast(at, DType::Int64);
  if (range && range->low >= 0) return number;
  const Value end = value_of(t, size_value(t, size));
  const Value is_negative = elementwise(t, AluOp::Cmplt, {number, scalar(t, DType::Int64, 0)});
  return elementwise(t, AluOp::Where,
                     {is_negative, elementwise(t, AluOp::Add, {number, end}), number});
}

Dim bind_position(TracedGraph& t, const Operand& at, int64_t axis, int64_t size) {
  const Value given = value_of(t, at);
  check_bindable(t, given);
  if (size == 0)
    user_error(ErrorKind::Unsupported, "index: cannot trace an element of no elements in a loop");
  check_indices(t, given, axis, size);
  return bind_size(t, clipped(t, counted_from_end(t, given, size), 0, size - 1), 0, size - 1);
}

Shape bind_slice(TracedGraph& t, const std::optional<Operand>& start,
                 const std::optional<Operand>& stop, int64_t size) {
  const auto bound = [&](const std::optional<Operand>& given, int64_t otherwise) {
    if (!given) return t.constant(Scalar::of(DType::Int64, otherwise));
    const Value at = value_of(t, *given);
    check_bindable(t, at);
    return clipped(t, counted_from_end(t, at, size), 0, size);
  };
  const Value first = bound(start, 0), last = bound(stop, size);
  const Value none = t.constant(Scalar::of(DType::Int64, int64_t{0}));
  const Value count = t.alu(AluOp::Max, {t.alu(AluOp::Sub, {last, first}), none});
  return {bind_size(t, first, 0, size), bind_size(t, count, 0, size)};
}

std::optional<int64_t> constant_difference(const TracedGraph& t, const Operand& a,
                                           const Operand& b) {
  if (a.literal || b.literal) return std::nullopt;
  const auto [from, less] = without_constants(t, a.value);
  const auto [to, more] = without_constants(t, b.value);
  if (!same(t, from, to)) return std::nullopt;
  return more - less;
}

}  // namespace rune::graph::numpy
