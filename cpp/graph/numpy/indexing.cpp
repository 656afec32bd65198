#include "graph/numpy/indexing.h"

#include <algorithm>
#include <optional>

#include "graph/numpy/index_bounds.h"
#include "graph/numpy/movement.h"
#include "graph/numpy/reductions.h"

namespace rune::graph::numpy {

namespace {

using ItemKind = IndexItem::Kind;
constexpr int64_t kNewAxis = -1;

// `count` elements of an axis: start, start + step and so on, perhaps in reversed order.
struct Stretch {
  Dim start, count;
  int64_t step = 1;  // > 0
  bool is_reversed = false;
};

// The elements that basic items select.
struct Selection {
  std::vector<Stretch> ranges;  // one for each axis
  Ints axes;                    // for each axis of the result, the array's axis or kNewAxis
  std::vector<std::pair<int64_t, Dim>> unsure;  // (axis, integer): it may be out of bounds
};

// Does what Python's slice.indices does.
Stretch resolve_slice(const IndexItem& item, const Dim& size) {
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
                                  " elements (a symbolic size must be a multiple of the step)"));
    term.coefficient /= stride;
  }
  const Dim count(up(span.offset()), std::move(terms));
  if (count == 0) return {0, 0};
  if (step > 0) return {start, count, step};
  return {start + (count - 1) * step, count, stride, true};
}

// The number of axes of an array of this rank that the items index.
int64_t count_selected(const IndexItems& items, int64_t rank) {
  const auto count_of = [&](auto&& holds) {
    return std::count_if(items.begin(), items.end(), holds);
  };
  const int64_t selected = count_of([](const IndexItem& item) { return item.is_index(); });
  if (count_of([](const IndexItem& item) { return item.kind == ItemKind::Ellipsis; }) > 1)
    user_error(ErrorKind::Index, "an index can only have a single ellipsis ('...')");
  if (selected > rank)
    user_error(ErrorKind::Index, "too many indices for array: array is ", rank,
               "-dimensional, but ", selected, " were indexed");
  return selected;
}

Selection resolve(const IndexItems& items, const Shape& whole) {
  const auto rank = static_cast<int64_t>(whole.size());
  const int64_t selected = count_selected(items, rank);
  Selection result;
  const auto next = [&] { return static_cast<int64_t>(result.ranges.size()); };
  const auto keep = [&](Stretch range) {
    result.axes.push_back(next());
    result.ranges.push_back(std::move(range));
  };
  const auto keep_whole = [&](int64_t count) {
    for (; count > 0; --count) keep({0, whole[next()]});
  };
  for (const IndexItem& item : items) {
    switch (item.kind) {
      case ItemKind::Integer: {
        const Dim& size = whole[next()];
        const Dim at = from_end(item.integer, size);
        if (at.least() < 0 || !always_at_most(at + 1, size)) {
          if (size.is_constant() && item.integer.is_constant())
            user_error(ErrorKind::Index, "index ", item.integer, " is out of bounds for axis ",
                       next(), " with size ", size);
          result.unsure.emplace_back(next(), item.integer);
        }
        result.ranges.push_back({at, 1});
        break;
      }
      case ItemKind::Slice: keep(resolve_slice(item, whole[next()])); break;
      case ItemKind::NewAxis: result.axes.push_back(kNewAxis); break;
      case ItemKind::Ellipsis: keep_whole(rank - selected); break;
      case ItemKind::Array: RUNE_UNREACHABLE("only basic items");
    }
  }
  keep_whole(rank - next());
  return result;
}

// `count` elements of an axis: start, start + step and so on, with step > 0. The axis is cut, or
// padded if it is too short, to count * step elements. Every step-th of them is kept.
Value strided(TracedGraph& t, Value x, int64_t axis, const Dim& start, const Dim& count,
              int64_t step) {
  const Shape from = t.shape(x);
  const Dim high = smaller("slice", from[axis], start + count * step);
  x = t.slice(x, axis, start, high);
  if (step == 1 || count == 0) return x;
  DimPairs widths(from.size(), {0, 0});
  widths[axis].second = count * step - (high - start);
  x = t.pad(x, widths);
  Shape split = from, result = from;
  split[axis] = count;
  split.insert(split.begin() + axis + 1, step);
  result[axis] = count;
  return t.reshape(t.slice(t.reshape(x, split), axis + 1, 0, 1), result);
}

// The inverse of `strided`: an axis of `size` zeros with x's elements at start, start + step, ...
Value spread(TracedGraph& t, Value x, int64_t axis, const Dim& start, int64_t step,
             const Dim& size) {
  const Shape from = t.shape(x);
  const Dim& count = from[axis];
  Dim length = count;
  if (step > 1 && count != 0) {
    Shape split = from, merged = from;
    split.insert(split.begin() + axis + 1, 1);
    DimPairs widths(split.size(), {0, 0});
    widths[axis + 1].second = step - 1;
    merged[axis] = count * step;
    x = t.reshape(t.pad(t.reshape(x, split), widths), merged);
    length = smaller("slice", count * step, size - start);
    x = t.slice(x, axis, 0, length);
  }
  DimPairs widths(from.size(), {0, 0});
  widths[axis] = {start, size - start - length};
  return t.pad(x, widths);
}

// The elements at positions `at` along an axis, with a check of the positions. Errors give the
// axis's number as `reported`.
Value gather(TracedGraph& t, Value source, Value at, int64_t axis, int64_t reported) {
  const Dim size = t.shape(source)[axis];
  if (!is_integer(t.dtype(at)))
    user_error(ErrorKind::Type, "Cannot cast array data from dtype('", numpy_name(t.dtype(at)),
               "') to dtype('int64') according to the rule 'same_kind'");
  if (size == 0 && max_elements(t.shape(at)) != 0)
    user_error(ErrorKind::Index, "cannot do a non-empty take from an empty axes.");
  if (t.dtype(at) == DType::Uint64) at = t.cast(at, DType::Int64);  // as NumPy does
  check_indices(t, at, reported, size);
  return t.add(Gather{axis}, {source, at});
}

Value integer_value(TracedGraph& t, const Dim& integer) {
  const Value at = value_of(t, size_value(t, integer));
  t.ranges[at] = {integer, integer};
  return at;
}

bool is_array(const IndexItem& item) {
  return item.kind == ItemKind::Array;
}

std::string shapes_text(const std::vector<Shape>& shapes) {
  std::string text;
  for (const Shape& shape : shapes) {
    text += '(';
    for (size_t i = 0; i < shape.size(); ++i)
      text += (i ? "," : "") + shape[i].text() + (shape.size() == 1 ? "," : "");
    text += ") ";
  }
  return text;
}

// Broadcasts the shapes of index arrays as NumPy does.
Shape broadcast_indices(const std::vector<Shape>& shapes) {
  Shape result;
  for (const Shape& shape : shapes) {
    if (shape.size() > result.size())
      result.insert(result.begin(), shape.size() - result.size(), 1);
    const size_t skipped = result.size() - shape.size();
    for (size_t i = 0; i < shape.size(); ++i) {
      Dim& size = result[skipped + i];
      if (shape[i] != 1 && size != 1 && shape[i] != size) {
        const std::string message =
            "shape mismatch: indexing arrays could not be broadcast together with shapes " +
            shapes_text(shapes);
        if (shape[i].is_constant() && size.is_constant()) user_error(ErrorKind::Index, message);
        refuse_sizes({shape[i], size}, message);
      }
      if (size == 1) size = shape[i];
    }
  }
  return result;
}

// An index expression with arrays of integers. Integers in it are treated as 0-d arrays.
struct ArrayIndex {
  struct Array {
    Value at;
    int64_t axis = 0;      // the axis of the view x[basic] that the array indexes
    int64_t reported = 0;  // the same axis in x
  };
  IndexItems basic;  // the items with full slices in place of the arrays
  std::vector<Array> arrays;
  Shape shape;           // the broadcast shape of the arrays
  int64_t position = 0;  // where the arrays' axes begin in the result
};

ArrayIndex array_index(TracedGraph& t, const Operand& x, const IndexItems& items) {
  const Shape whole = shape_of(t, x);
  const auto rank = static_cast<int64_t>(whole.size());
  const int64_t selected = count_selected(items, rank);
  ArrayIndex result;
  std::vector<Shape> shapes;
  int64_t axis = 0, view_axis = 0;
  size_t last = 0;  // one past the last item that indexes an axis
  bool adjacent = true;
  for (size_t i = 0; i < items.size(); ++i) {
    const IndexItem& item = items[i];
    result.basic.push_back(item);
    if (is_array(item) || item.kind == ItemKind::Integer) {
      adjacent &= result.arrays.empty() || last == i;
      last = i + 1;
      IndexItem all;
      all.kind = ItemKind::Slice;
      result.basic.back() = all;
      Value at = is_array(item) ? value_of(t, item.array) : integer_value(t, item.integer);
      if (!is_integer(t.dtype(at)))
        user_error(ErrorKind::Index, "arrays used as indices must be of integer (or boolean) type");
      if (t.dtype(at) == DType::Uint64) at = t.cast(at, DType::Int64);  // as NumPy does
      shapes.push_back(t.shape(at));
      result.arrays.push_back({at, view_axis, axis});
    }
    const int64_t spanned = item.kind == ItemKind::Ellipsis ? rank - selected : 1;
    view_axis += spanned;
    if (item.kind != ItemKind::NewAxis) axis += spanned;
  }
  result.shape = broadcast_indices(shapes);
  result.position = adjacent ? result.arrays.front().axis : 0;
  // A symbolic size can be merged with constant sizes after it, so it comes first.
  std::stable_partition(
      result.arrays.begin(), result.arrays.end(),
      [&](const ArrayIndex::Array& array) { return !whole[array.reported].is_constant(); });
  return result;
}

// The position of each selected element in the indexed axes, flattened in row-major order. A single
// array is returned as it is. Its negative elements count from the end.
Value flat_index(TracedGraph& t, const ArrayIndex& index, const Shape& whole) {
  Value flat;
  for (const auto& [given, axis, reported] : index.arrays) {
    const Dim& size = whole[reported];
    if (size == 0 && max_elements(index.shape) != 0)
      user_error(ErrorKind::Index, "index 0 is out of bounds for axis ", reported, " with size 0");
    check_indices(t, given, reported, size);
    if (index.arrays.size() == 1) return broadcast(t, given, index.shape);
    const Value wrapped = counted_from_end(t, given, size);
    const Value end = value_of(t, size_value(t, size));
    flat = flat.valid()
               ? elementwise(t, AluOp::Add, {elementwise(t, AluOp::Mul, {flat, end}), wrapped})
               : wrapped;
  }
  return broadcast(t, flat, index.shape);
}

// A permutation of the view's axes in which the axes that arrays index come first. `joined` gets
// the shape in which these are one axis.
Ints selected_first(const ArrayIndex& index, const Shape& view, Shape& joined) {
  Ints order;
  joined = {1};
  for (const ArrayIndex::Array& array : index.arrays) {
    joined[0] = product("index", joined[0], view[array.axis]);
    order.push_back(array.axis);
  }
  for (int64_t axis = 0; axis < static_cast<int64_t>(view.size()); ++axis) {
    if (contains(order, axis)) continue;
    order.push_back(axis);
    joined.push_back(view[axis]);
  }
  return order;
}

Operand basic_index(TracedGraph& t, Value value, const IndexItems& items) {
  const Selection selection = resolve(items, t.shape(value));
  const auto rank = static_cast<int64_t>(selection.ranges.size());
  const auto unsure_at = [&](int64_t axis) {
    return std::find_if(selection.unsure.begin(), selection.unsure.end(),
                        [&](const auto& element) { return element.first == axis; });
  };
  DimPairs limits;  // of each axis; whole for axes that are not just cut
  for (int64_t axis = 0; axis < rank; ++axis) {
    const Stretch& range = selection.ranges[axis];
    const Dim& size = t.shape(value)[axis];
    const bool is_cut = range.step == 1 && unsure_at(axis) == selection.unsure.end();
    limits.emplace_back(is_cut ? range.start : 0,
                        is_cut ? smaller("slice", size, range.start + range.count) : size);
  }
  value = t.shrink(value, std::move(limits));
  Ints reversed;
  for (int64_t axis = 0; axis < rank; ++axis) {
    const Stretch& range = selection.ranges[axis];
    if (const auto at = unsure_at(axis); at != selection.unsure.end()) {
      Shape one = t.shape(value);
      one[axis] = 1;
      value = t.reshape(gather(t, value, integer_value(t, at->second), axis, axis), one);
    } else if (range.step != 1) {
      value = strided(t, value, axis, range.start, range.count, range.step);
    }
    if (range.is_reversed) reversed.push_back(axis);
  }
  value = t.flip(value, reversed);
  Shape shape;
  for (const int64_t axis : selection.axes)
    shape.push_back(axis == kNewAxis ? Dim(1) : t.shape(value)[axis]);
  return t.reshape(value, std::move(shape));
}

Operand index_by_arrays(TracedGraph& t, const Operand& x, const IndexItems& items) {
  const ArrayIndex at = array_index(t, x, items);
  const Value view = basic_index(t, value_of(t, x), at.basic).value;
  // Negative elements of one array count from the end.
  if (at.arrays.size() == 1) {
    const auto& [given, axis, reported] = at.arrays[0];
    return gather(t, view, given, axis, reported);
  }
  Shape joined;
  const Ints order = selected_first(at, t.shape(view), joined);
  const Value flat = t.reshape(transpose(t, view, order).value, joined);
  const Value found = t.add(Gather{0}, {flat, flat_index(t, at, shape_of(t, x))});
  // The axes of the index arrays are first now. Move them behind the view's axes that precede them.
  const auto selected = static_cast<int64_t>(at.shape.size());
  Ints result;
  const auto rank = static_cast<int64_t>(t.shape(found).size());
  for (int64_t i = 0; i < at.position; ++i) result.push_back(selected + i);
  for (int64_t i = 0; i < selected; ++i) result.push_back(i);
  for (int64_t i = selected + at.position; i < rank; ++i) result.push_back(i);
  return transpose(t, found, result);
}

}  // namespace

Operand take(TracedGraph& t, const Operand& x, const Operand& indices, std::optional<int64_t> axis,
             std::optional<int64_t> reported) {
  const Value source = axis ? value_of(t, x) : reshape(t, x, {-1}).value;
  const int64_t along =
      axis_of("take", axis.value_or(0), static_cast<int64_t>(t.shape(source).size()));
  return gather(t, source, value_of(t, indices), along, reported.value_or(along));
}

Operand index(TracedGraph& t, const Operand& x, const IndexItems& items) {
  if (std::any_of(items.begin(), items.end(), is_array)) return index_by_arrays(t, x, items);
  return basic_index(t, value_of(t, x), items);
}

Operand put(TracedGraph& t, const Operand& x, const IndexItems& items, const Operand& value) {
  const Value old = value_of(t, x);
  const Shape whole = t.shape(old);
  const Selection selection = resolve(items, whole);
  Shape box;
  Ints reversed;
  bool all = true;
  for (const Stretch& range : selection.ranges) {
    const auto axis = static_cast<int64_t>(box.size());
    if (range.count == 0) return old;
    if (range.is_reversed) reversed.push_back(axis);
    all &= range.count == whole[axis];
    box.push_back(range.count);
  }
  DimPairs around(whole.size(), {0, 0});
  for (size_t axis = 0; axis < whole.size(); ++axis) {
    const auto& [start, count, step, is_reversed] = selection.ranges[axis];
    if (step == 1) around[axis] = {start, whole[axis] - start - count};
  }
  const auto place = [&](Value v) {
    v = t.pad(v, around);
    for (size_t axis = 0; axis < whole.size(); ++axis) {
      const Stretch& range = selection.ranges[axis];
      if (range.step != 1 && range.count != whole[axis])
        v = spread(t, v, static_cast<int64_t>(axis), range.start, range.step, whole[axis]);
    }
    return v;
  };
  const Value given = value_of(t, value);
  const bool is_number = t.shape(given).empty();
  const Value part = is_number ? t.expand(t.reshape(given, Shape(box.size(), 1)), box)
                               : t.flip(t.reshape(given, box), reversed);
  if (all) return part;
  if (std::all_of(selection.ranges.begin(), selection.ranges.end(),
                  [](const Stretch& range) { return range.step == 1; })) {
    std::vector<Dim> offsets;
    for (const Stretch& range : selection.ranges) offsets.push_back(range.start);
    return t.add(Update{std::move(offsets)}, {old, part});
  }
  const Value inside = place(t.full(Scalar::of(DType::Bool, true), box));
  return t.alu(AluOp::Where, {inside, place(part), old});
}

Shape indexed_shape(TracedGraph& t, const Operand& x, const IndexItems& items) {
  if (std::none_of(items.begin(), items.end(), is_array)) {
    const Selection selection = resolve(items, shape_of(t, x));
    if (!selection.unsure.empty()) return shape_of(t, index(t, x, items));  // index() checks them
    Shape shape;
    for (const int64_t axis : selection.axes)
      shape.push_back(axis == kNewAxis ? Dim(1) : selection.ranges[axis].count);
    return shape;
  }
  const ArrayIndex at = array_index(t, x, items);
  Shape joined;
  selected_first(at, shape_of(t, basic_index(t, value_of(t, x), at.basic)), joined);
  joined.erase(joined.begin());
  joined.insert(joined.begin() + at.position, at.shape.begin(), at.shape.end());
  return joined;
}

Operand scatter(TracedGraph& t, const Operand& x, const IndexItems& items, const Operand& updates,
                ScatterMode mode) {
  RUNE_CHECK(std::any_of(items.begin(), items.end(), is_array), "scatter: no arrays of indices");
  const DType dtype = dtype_of(t, x);
  if (is_complex(dtype) && mode != ScatterMode::Set && mode != ScatterMode::Add)
    user_error(ErrorKind::Unsupported, "scatter ", name_of(mode), ": cannot trace it on ",
               numpy_name(dtype));
  const ArrayIndex at = array_index(t, x, items);
  Dim count = 1;
  for (const Dim& size : at.shape) count = product("index", count, size);
  const Value flat_at = flat_index(t, at, shape_of(t, x));
  const Value view = basic_index(t, value_of(t, x), at.basic).value;
  if (count == 0 || max_elements(t.shape(view)) == 0) return x;
  Shape joined;
  const Ints order = selected_first(at, t.shape(view), joined);
  const Operand ordered = transpose(t, view, order);

  const auto selected = static_cast<int64_t>(at.shape.size());
  Ints lead;
  const auto rank = static_cast<int64_t>(shape_of(t, updates).size());
  for (int64_t i = 0; i < selected; ++i) lead.push_back(at.position + i);
  for (int64_t i = 0; i < rank; ++i)
    if (i < at.position || i >= at.position + selected) lead.push_back(i);
  Shape rows = joined;
  rows[0] = count;
  const Value values = t.reshape(transpose(t, updates, lead).value, rows);

  const Value written = t.add(Scatter{mode, 0}, {t.reshape(ordered.value, joined),
                                                 t.reshape(flat_at, Shape{count}), values});
  Ints back(order.size());
  for (size_t i = 0; i < order.size(); ++i) back[order[i]] = static_cast<int64_t>(i);
  const Operand part = transpose(t, t.reshape(written, shape_of(t, ordered)), back);
  return put(t, x, at.basic, part);
}

}  // namespace rune::graph::numpy
