// x[...]: slices are movement, one array of integers is a Gather.
#include <algorithm>

#include "graph/numpy_ops.h"

namespace rune::graph {

namespace {

struct Range {
  int64_t start, count, step;
};

// Python's slice.indices.
Range resolve_slice(const IndexItem& item, int64_t size) {
  const int64_t step = item.step.value_or(1);
  if (step == 0) user_error(ErrorKind::Value, "slice step cannot be zero");
  const auto clamp = [&](std::optional<int64_t> bound, int64_t fallback) {
    if (!bound) return fallback;
    const int64_t wrapped = *bound < 0 ? *bound + size : *bound;
    return step > 0 ? std::clamp<int64_t>(wrapped, 0, size)
                    : std::clamp<int64_t>(wrapped, -1, size - 1);
  };
  const int64_t start = clamp(item.start, step > 0 ? 0 : size - 1);
  const int64_t stop = clamp(item.stop, step > 0 ? size : -1);
  const int64_t span = step > 0 ? stop - start : start - stop;
  const int64_t stride = step > 0 ? step : -step;
  return {start, span <= 0 ? 0 : (span + stride - 1) / stride, step};
}

}  // namespace

// Elements start, start + step, ... (`count` of them, step > 0): the axis is cut and, where it is
// short, padded to count * step elements, of which every step-th is kept.
Value NumpyBuilder::strided(Value x, int64_t axis, int64_t start, int64_t count, int64_t step) {
  const Shape from = b_.shape(x);
  const int64_t high = std::min(from[axis], start + count * step);
  x = slice_axis(x, axis, start, high);
  if (step == 1 || count == 0) return x;
  Pairs widths(from.size(), {0, 0});
  widths[axis].second = count * step - (high - start);
  x = b_.pad(x, widths);
  Shape split = from, result = from;
  split[axis] = count;
  split.insert(split.begin() + axis + 1, step);
  result[axis] = count;
  return b_.reshape(slice_axis(b_.reshape(x, split), axis + 1, 0, 1), result);
}

Operand NumpyBuilder::take(const Operand& x, const Operand& indices, std::optional<int64_t> axis) {
  Value source = value_of(x);
  if (!axis) source = b_.reshape(source, {num_elements(b_.shape(source))});
  const auto rank = static_cast<int64_t>(b_.shape(source).size());
  const int64_t along = axis_of("take", axis.value_or(0), rank);
  Value at = value_of(indices);
  if (!is_integer(b_.dtype(at)))
    user_error(ErrorKind::Index, "take: cannot index with ", numpy_name(b_.dtype(at)),
               " (arrays used as indices must be of integer type)");
  if (b_.shape(source)[along] == 0 && num_elements(b_.shape(at)) != 0)
    user_error(ErrorKind::Index, "cannot do a non-empty take from an empty axes.");
  if (b_.dtype(at) == DType::Uint64)
    user_error(ErrorKind::Unsupported, "take: cannot trace indices of uint64");
  return b_.add(Gather{along}, {source, at});
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
  // With several, or with integers beside it, NumPy broadcasts them and may move their axes to the
  // front.
  if (arrays > 1 || (arrays == 1 && integers))
    user_error(ErrorKind::Unsupported, "getitem: cannot trace an index with more than one array",
               "\nhint: index one axis at a time: x[i][:, j]");

  Ints dropped;  // axes of integers, to be removed at the end
  std::optional<std::pair<int64_t, Operand>> gather;
  int64_t axis = 0;
  for (const IndexItem& item : items) {
    const int64_t size =
        axis < static_cast<int64_t>(b_.shape(value).size()) ? b_.shape(value)[axis] : 0;
    switch (item.kind) {
      case ItemKind::Integer: {
        const int64_t at = item.integer < 0 ? item.integer + size : item.integer;
        if (at < 0 || at >= size)
          user_error(ErrorKind::Index, "index ", item.integer, " is out of bounds for axis ", axis,
                     " with size ", size);
        value = slice_axis(value, axis, at, at + 1);
        dropped.push_back(axis++);
        break;
      }
      case ItemKind::Slice: {
        const Range range = resolve_slice(item, size);
        if (range.step < 0 && range.count > 0) {
          const int64_t first = range.start + (range.count - 1) * range.step;
          value = b_.flip(strided(value, axis, first, range.count, -range.step), {axis});
        } else {
          value = strided(value, axis, range.count ? range.start : 0, range.count,
                          std::max<int64_t>(range.step, 1));
        }
        ++axis;
        break;
      }
      case ItemKind::NewAxis:
        value = expand_dims(value, {axis}).value;
        ++axis;
        break;
      case ItemKind::Ellipsis: axis += rank - consumed; break;
      case ItemKind::Array: gather = {axis++, item.array}; break;
    }
  }
  if (gather) return take(value, gather->second, gather->first);
  return drop_axes(value, dropped);
}

}  // namespace rune::graph
