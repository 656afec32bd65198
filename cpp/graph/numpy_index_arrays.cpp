// x[...] by arrays of integers: the axes that they select become one, with one flat index into it.
#include <algorithm>

#include "graph/numpy_ops.h"

namespace rune::graph {

namespace {

using ItemKind = IndexItem::Kind;

bool selects(const IndexItem& item) {
  return item.kind == ItemKind::Array || item.kind == ItemKind::Integer;
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

// NumPy's broadcasting of index arrays.
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

}  // namespace

NumpyBuilder::ArrayIndex NumpyBuilder::array_index(const Operand& x,
                                                   const std::vector<IndexItem>& items) {
  const Shape whole = shape(x);
  const auto rank = static_cast<int64_t>(whole.size());
  const auto consumed = std::count_if(items.begin(), items.end(), [](const IndexItem& item) {
    return item.kind != ItemKind::NewAxis && item.kind != ItemKind::Ellipsis;
  });
  if (consumed > rank)
    user_error(ErrorKind::Index, "too many indices for array: array is ", rank,
               "-dimensional, but ", consumed, " were indexed");
  ArrayIndex result;
  std::vector<Shape> shapes;
  int64_t axis = 0, view_axis = 0;
  size_t last = 0;  // one past the item that selected last
  bool adjacent = true;
  for (size_t i = 0; i < items.size(); ++i) {
    const IndexItem& item = items[i];
    result.basic.push_back(item);
    if (selects(item)) {
      adjacent &= result.axes.empty() || last == i;
      last = i + 1;
      IndexItem all;
      all.kind = ItemKind::Slice;
      result.basic.back() = all;
      Value at = item.kind == ItemKind::Array ? value_of(item.array)
                                              : b_.constant(Scalar::of(DType::Int64, item.integer));
      if (!is_integer(b_.dtype(at)))
        user_error(ErrorKind::Index, "arrays used as indices must be of integer (or boolean) type");
      if (b_.dtype(at) == DType::Uint64) at = b_.cast(at, DType::Int64);  // as NumPy does
      if (item.kind == ItemKind::Integer) ranges_[at] = {item.integer, item.integer};
      shapes.push_back(b_.shape(at));
      result.arrays.push_back(at);
      result.axes.push_back(view_axis);
      result.reported.push_back(axis);
    }
    const int64_t spanned = item.kind == ItemKind::Ellipsis ? rank - consumed : 1;
    view_axis += spanned;
    if (item.kind != ItemKind::NewAxis) axis += spanned;
  }
  result.shape = broadcast_indices(shapes);
  result.position = adjacent ? result.axes.front() : 0;
  // A symbolic size merges with constants inside of it.
  const auto symbolic =
      std::find_if(result.reported.begin(), result.reported.end(),
                   [&](int64_t reported) { return !whole[reported].is_constant(); });
  if (symbolic != result.reported.end()) {
    const auto first = symbolic - result.reported.begin();
    std::rotate(result.arrays.begin(), result.arrays.begin() + first,
                result.arrays.begin() + first + 1);
    std::rotate(result.axes.begin(), result.axes.begin() + first, result.axes.begin() + first + 1);
    std::rotate(result.reported.begin(), symbolic, symbolic + 1);
  }
  return result;
}

// The index of each selected element along the selected axes, flattened in row-major order; of one
// array, that array, whose negative elements count from the end.
Value NumpyBuilder::flat_index(const ArrayIndex& index, const Shape& whole) {
  Value flat;
  for (size_t i = 0; i < index.arrays.size(); ++i) {
    const Dim& size = whole[index.reported[i]];
    if (size == 0 && max_elements(index.shape) != 0)
      user_error(ErrorKind::Index, "index 0 is out of bounds for axis ", index.reported[i],
                 " with size 0");
    check_indices(index.arrays[i], index.reported[i], size);
    if (index.arrays.size() == 1) return broadcast(index.arrays[i], index.shape);
    const Value at = b_.cast(index.arrays[i], DType::Int64);
    const Value zero = b_.constant(Scalar::of(DType::Int64, int64_t{0}));
    const Value end = value_of(size_of(size));
    const Value wrapped = elementwise(AluOp::Where, {elementwise(AluOp::Cmplt, {at, zero}),
                                                     elementwise(AluOp::Add, {at, end}), at});
    flat = flat.valid() ? elementwise(AluOp::Add, {elementwise(AluOp::Mul, {flat, end}), wrapped})
                        : wrapped;
  }
  return broadcast(flat, index.shape);
}

// The view's axes with those that arrays select first, and the shape with these joined.
Ints NumpyBuilder::selected_first(const ArrayIndex& index, const Shape& view, Shape& joined) {
  Ints order = index.axes;
  joined = {1};
  for (const int64_t axis : index.axes) joined[0] = product("index", joined[0], view[axis]);
  for (int64_t axis = 0; axis < static_cast<int64_t>(view.size()); ++axis) {
    if (std::find(index.axes.begin(), index.axes.end(), axis) != index.axes.end()) continue;
    order.push_back(axis);
    joined.push_back(view[axis]);
  }
  return order;
}

Shape NumpyBuilder::indexed_shape(const Operand& x, const std::vector<IndexItem>& items) {
  if (std::none_of(items.begin(), items.end(),
                   [](const IndexItem& item) { return item.kind == ItemKind::Array; }))
    return shape(index(x, items));
  const ArrayIndex at = array_index(x, items);
  Shape joined;
  selected_first(at, shape(index(x, at.basic)), joined);
  joined.erase(joined.begin());
  joined.insert(joined.begin() + at.position, at.shape.begin(), at.shape.end());
  return joined;
}

Operand NumpyBuilder::index_by_arrays(const Operand& x, const std::vector<IndexItem>& items) {
  const ArrayIndex at = array_index(x, items);
  const Value view = value_of(index(x, at.basic));
  Shape joined;
  const Ints order = selected_first(at, b_.shape(view), joined);
  const Value flat = b_.reshape(transpose(view, order).value, joined);
  const Value found = b_.add(Gather{0}, {flat, flat_index(at, shape(x))});
  // The axes of the index arrays lead; those of the view that come before their place go there.
  const auto selected = static_cast<int64_t>(at.shape.size());
  Ints result;
  const auto rank = static_cast<int64_t>(b_.shape(found).size());
  for (int64_t i = 0; i < at.position; ++i) result.push_back(selected + i);
  for (int64_t i = 0; i < selected; ++i) result.push_back(i);
  for (int64_t i = selected + at.position; i < rank; ++i) result.push_back(i);
  return transpose(found, result);
}

Operand NumpyBuilder::scatter(const Operand& x, const std::vector<IndexItem>& items,
                              const Operand& updates, ScatterMode mode) {
  const auto is_array = [](const IndexItem& i) { return i.kind == IndexItem::Kind::Array; };
  RUNE_CHECK(std::any_of(items.begin(), items.end(), is_array), "scatter: no arrays of indices");
  const ArrayIndex at = array_index(x, items);
  Dim count = 1;
  for (const Dim& size : at.shape) count = product("index", count, size);
  const Value flat_at = flat_index(at, shape(x));
  const Value view = value_of(index(x, at.basic));
  if (count == 0 || max_elements(b_.shape(view)) == 0) return x;
  Shape joined;
  const Ints order = selected_first(at, b_.shape(view), joined);
  const Operand ordered = transpose(view, order);

  const auto selected = static_cast<int64_t>(at.shape.size());
  Ints lead;
  const auto rank = static_cast<int64_t>(shape(updates).size());
  for (int64_t i = 0; i < selected; ++i) lead.push_back(at.position + i);
  for (int64_t i = 0; i < rank; ++i)
    if (i < at.position || i >= at.position + selected) lead.push_back(i);
  Shape rows = joined;
  rows[0] = count;
  const Value values = b_.reshape(transpose(updates, lead).value, rows);

  const Value written = b_.add(Scatter{mode, 0}, {b_.reshape(ordered.value, joined),
                                                  b_.reshape(flat_at, Shape{count}), values});
  Ints back(order.size());
  for (size_t i = 0; i < order.size(); ++i) back[order[i]] = static_cast<int64_t>(i);
  const Operand part = transpose(b_.reshape(written, shape(ordered)), back);
  return put(x, at.basic, part);
}

Operand NumpyBuilder::running_count(const Operand& mask) {
  const Value flat = reshape(mask, {-1}).value;
  return b_.add(Scan{ReduceOp::Add, 0}, {b_.cast(flat, DType::Int64)});
}

}  // namespace rune::graph
