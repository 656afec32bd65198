// x[...]: slices are movement, one array of integers is a Gather; several: numpy_index_arrays.cpp.
#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

#include "graph/numpy_ops.h"

namespace rune::graph {

namespace {

struct Range {
  Dim start, count;
  int64_t step;
};

// Python's slice.indices.
Range resolve_slice(const IndexItem& item, const Dim& size) {
  const int64_t step = item.step.value_or(1);
  if (step == 0) user_error(ErrorKind::Value, "slice step cannot be zero");
  const Dim low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
  const auto bound = [&](const std::optional<Dim>& given, const Dim& fallback) {
    return given ? clamp("slice", from_end(*given, size), low, high) : fallback;
  };
  const Dim start = bound(item.start, step > 0 ? low : high);
  const Dim stop = bound(item.stop, step > 0 ? high : low);
  const Dim span = larger("slice", step > 0 ? stop - start : start - stop, 0);
  const int64_t stride = step > 0 ? step : -step;
  const auto up = [&](int64_t n) { return n > 0 ? (n + stride - 1) / stride : -(-n / stride); };
  std::vector<Dim::Term> terms = span.terms();
  for (Dim::Term& term : terms) {
    if (term.coefficient % stride != 0)
      refuse_sizes({span}, concat("slice: cannot take every ", stride, "-th of ", span,
                                  " elements (their number is no whole multiple)"));
    term.coefficient /= stride;
  }
  return {start, Dim(up(span.offset()), std::move(terms)), step};
}

// The shape with a size of 1.
Shape with_one(Shape shape, int64_t axis) {
  shape[axis] = 1;
  return shape;
}

}  // namespace

// Elements start, start + step, ... (`count` of them, step > 0): the axis is cut and, where it is
// short, padded to count * step elements, of which every step-th is kept.
Value NumpyBuilder::strided(Value x, int64_t axis, const Dim& start, const Dim& count,
                            int64_t step) {
  const Shape from = b_.shape(x);
  const Dim high = smaller("slice", from[axis], start + count * step);
  x = slice_axis(x, axis, start, high);
  if (step == 1 || count == 0) return x;
  DimPairs widths(from.size(), {0, 0});
  widths[axis].second = count * step - (high - start);
  x = b_.pad(x, widths);
  Shape split = from, result = from;
  split[axis] = count;
  split.insert(split.begin() + axis + 1, step);
  result[axis] = count;
  return b_.reshape(slice_axis(b_.reshape(x, split), axis + 1, 0, 1), result);
}

Value NumpyBuilder::spread(Value x, int64_t axis, const Dim& start, int64_t step, const Dim& size) {
  const Shape from = b_.shape(x);
  const Dim count = from[axis];
  Dim length = count;
  if (step > 1 && count != 0) {
    Shape split = from, merged = from;
    split.insert(split.begin() + axis + 1, 1);
    DimPairs widths(split.size(), {0, 0});
    widths[axis + 1].second = step - 1;
    merged[axis] = count * step;
    x = b_.reshape(b_.pad(b_.reshape(x, split), widths), merged);
    length = smaller("slice", count * step, size - start);
    x = slice_axis(x, axis, 0, length);
  }
  DimPairs widths(from.size(), {0, 0});
  widths[axis] = {start, size - start - length};
  return b_.pad(x, widths);
}

void NumpyBuilder::assume_range(const Operand& x, int64_t low, int64_t high) {
  ranges_[x.value] = {low, high};
}

void NumpyBuilder::check_indices(Value at, int64_t axis, const Dim& size) {
  if (!checked_.emplace(at, axis, size.text()).second) return;
  const DType dtype = b_.dtype(at);
  const int bits = bits_of(dtype);
  const bool has_sign = kind(dtype) == Kind::Int;
  int64_t low = has_sign ? std::numeric_limits<int64_t>::min() >> (64 - bits) : 0;
  int64_t high = has_sign || bits == 64 ? std::numeric_limits<int64_t>::max() >> (64 - bits)
                                        : (int64_t{1} << bits) - 1;
  if (const auto known = ranges_.find(at); known != ranges_.end())
    std::tie(low, high) = known->second;
  const int64_t least = size.least();
  const bool may_be_low = low < -least, may_be_high = high >= least;
  if (max_elements(b_.shape(at)) == 0 || (!may_be_low && !may_be_high)) return;
  // Unsigned, i + size is below 2 * size for exactly the signed i in range, so that one maximum
  // tells. It is of an index out of range if there is one.
  const bool narrow = least == size && bits <= 32;
  const DType wide = narrow ? DType::Uint32 : DType::Uint64;
  const auto number = [&](int64_t n) { return b_.constant(Scalar::of(DType::Int64, n)); };
  const Value end = b_.cast(value_of(size_of(size)), wide);
  Value position = b_.cast(at, wide);
  if (has_sign) position = elementwise(AluOp::Add, {position, end});
  Value most = reduce("max", position, std::nullopt, false).value;
  const Value limit = has_sign ? b_.alu(AluOp::Add, {end, end}) : end;
  const Value bad = b_.alu(AluOp::Cmple, {limit, most});
  if (has_sign) {
    most = b_.alu(AluOp::Sub, {most, end});
    if (narrow) most = b_.cast(most, DType::Int32);
  }
  const Value i = b_.cast(most, DType::Int64);
  const Value odd = b_.alu(AluOp::Add, {b_.alu(AluOp::Mul, {i, number(2)}), number(1)});
  const Value found = b_.alu(AluOp::Where, {bad, odd, number(0)});
  checks_.push_back({b_.cast(found, DType::Uint64), axis, size});
}

Value NumpyBuilder::gather(Value source, const Operand& indices, int64_t axis, int64_t reported) {
  Value at = value_of(indices);
  const Dim size = b_.shape(source)[axis];
  if (!is_integer(b_.dtype(at)))
    user_error(ErrorKind::Type, "Cannot cast array data from dtype('", numpy_name(b_.dtype(at)),
               "') to dtype('int64') according to the rule 'same_kind'");
  if (size == 0 && max_elements(b_.shape(at)) != 0)
    user_error(ErrorKind::Index, "cannot do a non-empty take from an empty axes.");
  if (b_.dtype(at) == DType::Uint64) at = b_.cast(at, DType::Int64);  // as NumPy does
  check_indices(at, reported, size);
  return b_.add(Gather{axis}, {source, at});
}

Operand NumpyBuilder::take(const Operand& x, const Operand& indices, std::optional<int64_t> axis) {
  Value source = value_of(x);
  if (!axis) source = reshape(source, {-1}).value;
  const auto rank = static_cast<int64_t>(b_.shape(source).size());
  const int64_t along = axis_of("take", axis.value_or(0), rank);
  return gather(source, indices, along, along);
}

Operand NumpyBuilder::take_unchecked(const Operand& x, const Operand& indices, int64_t axis) {
  return b_.add(Gather{axis}, {value_of(x), value_of(indices)});
}

Operand NumpyBuilder::index(const Operand& x, const std::vector<IndexItem>& items) {
  using ItemKind = IndexItem::Kind;
  Value value = value_of(x);
  const auto rank = static_cast<int64_t>(b_.shape(value).size());
  int64_t consumed = 0, arrays = 0, ellipses = 0;
  for (const IndexItem& item : items) {
    consumed += item.kind != ItemKind::NewAxis && item.kind != ItemKind::Ellipsis;
    arrays += item.kind == ItemKind::Array;
    ellipses += item.kind == ItemKind::Ellipsis;
  }
  if (ellipses > 1)
    user_error(ErrorKind::Index, "an index can only have a single ellipsis ('...')");
  if (consumed > rank)
    user_error(ErrorKind::Index, "too many indices for array: array is ", rank,
               "-dimensional, but ", consumed, " were indexed");
  const bool integers = std::any_of(items.begin(), items.end(), [](const IndexItem& item) {
    return item.kind == ItemKind::Integer;
  });
  if (arrays > 1 || (arrays == 1 && integers)) return index_by_arrays(x, items);

  Ints dropped;  // axes of integers, to be removed at the end
  std::optional<std::pair<int64_t, Operand>> array;
  int64_t axis = 0, new_axes = 0, reported = 0;
  for (const IndexItem& item : items) {
    const Dim size =
        axis < static_cast<int64_t>(b_.shape(value).size()) ? b_.shape(value)[axis] : Dim(0);
    switch (item.kind) {
      case ItemKind::Integer: {
        if (const int64_t least = size.least();
            !size.is_constant() && (item.integer < -least || item.integer >= least)) {
          const Value at = b_.constant(Scalar::of(DType::Int64, item.integer));
          ranges_[at] = {item.integer, item.integer};
          value =
              b_.reshape(gather(value, at, axis, axis - new_axes), with_one(b_.shape(value), axis));
          dropped.push_back(axis++);
          break;
        }
        const Dim at = from_end(item.integer, size);
        if (at.least() < 0 || !always_at_most(at + 1, size))
          user_error(ErrorKind::Index, "index ", item.integer, " is out of bounds for axis ", axis,
                     " with size ", size);
        value = slice_axis(value, axis, at, at + 1);
        dropped.push_back(axis++);
        break;
      }
      case ItemKind::Slice: {
        const Range range = resolve_slice(item, size);
        if (range.step < 0 && range.count != 0) {
          const Dim first = range.start + (range.count - 1) * range.step;
          value = flip_axis(strided(value, axis, first, range.count, -range.step), axis);
        } else {
          value = strided(value, axis, range.count == 0 ? Dim(0) : range.start, range.count,
                          std::max<int64_t>(range.step, 1));
        }
        ++axis;
        break;
      }
      case ItemKind::NewAxis:
        value = expand_dims(value, {axis}).value;
        ++axis;
        ++new_axes;
        break;
      case ItemKind::Ellipsis: axis += rank - consumed; break;
      case ItemKind::Array:
        reported = axis - new_axes;
        array = {axis++, item.array};
        break;
    }
  }
  if (array && !is_integer(dtype(array->second)))
    user_error(ErrorKind::Index, "arrays used as indices must be of integer (or boolean) type");
  if (array) return gather(value, array->second, array->first, reported);
  return drop_axes(value, dropped);
}

Operand NumpyBuilder::put(const Operand& x, const std::vector<IndexItem>& items,
                          const Operand& value) {
  using ItemKind = IndexItem::Kind;
  const Value old = value_of(x);
  const Shape whole = b_.shape(old);
  const auto rank = static_cast<int64_t>(whole.size());
  int64_t consumed = 0;
  for (const IndexItem& item : items)
    consumed += item.kind != ItemKind::NewAxis && item.kind != ItemKind::Ellipsis;
  // What is read of each axis of x; integers read one element.
  std::vector<Range> ranges;
  for (const IndexItem& item : items) {
    const auto axis = static_cast<int64_t>(ranges.size());
    RUNE_CHECK(item.kind != ItemKind::Array, "put: only basic indices");
    if (item.kind == ItemKind::Integer) {
      ranges.push_back({from_end(item.integer, whole[axis]), 1, 1});
    } else if (item.kind == ItemKind::Slice) {
      ranges.push_back(resolve_slice(item, whole[axis]));
    } else if (item.kind == ItemKind::Ellipsis) {
      for (int64_t i = 0; i < rank - consumed; ++i) ranges.push_back({0, whole[axis + i], 1});
    }
  }
  while (static_cast<int64_t>(ranges.size()) < rank) ranges.push_back({0, whole[ranges.size()], 1});

  Shape box;
  Ints reversed;
  bool all = true;
  for (Range& range : ranges) {
    const auto axis = static_cast<int64_t>(box.size());
    box.push_back(range.count);
    all &= range.count == whole[axis];
    if (range.count == 0) return old;
    if (range.step > 0) continue;
    reversed.push_back(axis);
    range.start = range.start + (range.count - 1) * range.step;
    range.step = -range.step;
  }
  const auto place = [&](Value v) {
    for (int64_t axis = 0; axis < rank; ++axis) {
      const Range& range = ranges[axis];
      if (range.count != whole[axis]) v = spread(v, axis, range.start, range.step, whole[axis]);
    }
    return v;
  };
  Value part = b_.reshape(value_of(value), box);
  if (!reversed.empty()) part = b_.flip(part, reversed);
  if (all) return part;
  const Value inside = place(b_.full(Scalar::of(DType::Bool, true), box));
  return b_.alu(AluOp::Where, {inside, place(part), old});
}

bool NumpyBuilder::same(const Operand& a, const Operand& b) const {
  if (a.literal || b.literal) return false;
  std::set<std::pair<Value, Value>> seen;
  std::vector<std::pair<Value, Value>> open{{a.value, b.value}};
  while (!open.empty()) {
    const auto [x, y] = open.back();
    open.pop_back();
    if (x == y || !seen.emplace(x, y).second) continue;
    const Node &p = b_[x], &q = b_[y];
    if (!(p.payload == q.payload) || p.inputs.size() != q.inputs.size()) return false;
    for (size_t i = 0; i < p.inputs.size(); ++i) open.emplace_back(p.inputs[i], q.inputs[i]);
  }
  return true;
}

}  // namespace rune::graph
