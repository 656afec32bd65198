// NumPy's functions that move elements: shapes, joins, splits, padding.
#include <algorithm>
#include <numeric>

#include "graph/numpy_ops.h"

namespace rune::graph {

namespace {

template <class List>
int64_t rank_of(const List& shape) {
  return static_cast<int64_t>(shape.size());
}

// The number of elements of a shape: a constant times sizes without a common factor, one for each
// symbolic size.
struct Count {
  int64_t factor = 1;
  Shape symbolic;

  void multiply(const Dim& size) {
    int64_t common = size.offset();
    for (const Dim::Term& term : size.terms()) common = std::gcd(common, term.coefficient);
    factor *= common;
    if (size.is_constant()) return;
    std::vector<Dim::Term> terms = size.terms();
    for (Dim::Term& term : terms) term.coefficient /= common;
    symbolic.push_back(Dim(size.offset() / common, std::move(terms)));
  }
};

Count count_of(const Shape& shape) {
  Count count;
  for (const Dim& size : shape)
    if (size != -1) count.multiply(size);
  return count;
}

// What has to be multiplied with `b` to give `a`; nothing if that is no size.
std::optional<Dim> quotient(Count a, const Count& b) {
  for (const Dim& size : b.symbolic) {
    const auto found = std::find(a.symbolic.begin(), a.symbolic.end(), size);
    if (found == a.symbolic.end()) return std::nullopt;
    a.symbolic.erase(found);
  }
  if (b.factor == 0 || a.factor % b.factor != 0 || a.symbolic.size() > 1) return std::nullopt;
  const int64_t factor = a.factor / b.factor;
  return a.symbolic.empty() ? Dim(factor) : a.symbolic[0] * factor;
}

Ints iota(int64_t count) {
  Ints result(count);
  std::iota(result.begin(), result.end(), 0);
  return result;
}

[[noreturn]] void refuse_order(const char* op, const Dim& a, const Dim& b) {
  refuse_sizes({a, b}, concat(op, ": cannot tell the smaller of ", a, " and ", b));
}

}  // namespace

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

Operand NumpyBuilder::reshape(const Operand& x, Shape shape) {
  const Value value = value_of(x);
  const Shape from = b_.shape(value);
  int64_t unknown = -1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == -1) {
      if (unknown >= 0)
        user_error(ErrorKind::Value, "can only specify one unknown dimension (reshape to ",
                   shape_text(shape), ")");
      unknown = static_cast<int64_t>(i);
    } else if (shape[i].least() < 0) {
      refuse_sizes({shape[i]}, concat("reshape: cannot reshape ", shape_text(from), " to ",
                                      shape_text(shape), " (negative size ", shape[i], ")"));
    }
  }
  if (unknown < 0) return b_.reshape(value, std::move(shape));
  if (const auto size = quotient(count_of(from), count_of(shape))) {
    shape[unknown] = *size;
    return b_.reshape(value, std::move(shape));
  }
  Shape all = from;
  all.insert(all.end(), shape.begin(), shape.end());
  refuse_sizes(all, concat("reshape: cannot reshape ", shape_text(from), " to ", shape_text(shape),
                           " (the unknown size is not known to be a whole number)"));
}

Operand NumpyBuilder::transpose(const Operand& x, const Axes& axes) {
  const Value value = value_of(x);
  const int64_t rank = rank_of(b_.shape(value));
  Ints order = iota(rank);
  if (axes) {
    if (rank_of(*axes) != rank)
      user_error(ErrorKind::Value, "axes don't match array (transpose of ", rank, " dimensions by ",
                 shape_text(*axes), ")");
    normalize_axes("transpose", axes, rank);
    for (int64_t i = 0; i < rank; ++i) order[i] = axis_of("transpose", (*axes)[i], rank);
  } else {
    std::reverse(order.begin(), order.end());
  }
  return b_.permute(value, order);
}

Operand NumpyBuilder::swapaxes(const Operand& x, int64_t a, int64_t b) {
  const int64_t rank = rank_of(shape(x));
  Ints order = iota(rank);
  std::swap(order[axis_of("swapaxes", a, rank)], order[axis_of("swapaxes", b, rank)]);
  return transpose(x, order);
}

Operand NumpyBuilder::moveaxis(const Operand& x, const Ints& source, const Ints& destination) {
  const int64_t rank = rank_of(shape(x));
  if (source.size() != destination.size())
    user_error(ErrorKind::Value, "moveaxis: cannot move ", shape_text(source), " to ",
               shape_text(destination), " (", source.size(), " and ", destination.size(), " axes)");
  normalize_axes("moveaxis", source, rank);
  normalize_axes("moveaxis", destination, rank);
  Ints order(rank, -1);
  std::vector<bool> moved(rank);
  for (size_t i = 0; i < source.size(); ++i) {
    const int64_t from = axis_of("moveaxis", source[i], rank);
    order[axis_of("moveaxis", destination[i], rank)] = from;
    moved[from] = true;
  }
  int64_t next = 0;
  for (int64_t& axis : order) {
    if (axis >= 0) continue;
    while (moved[next]) ++next;
    axis = next++;
  }
  return transpose(x, order);
}

Operand NumpyBuilder::expand_dims(const Operand& x, const Ints& axes) {
  const Value value = value_of(x);
  const Shape& from = b_.shape(value);
  const int64_t rank = rank_of(from) + rank_of(axes);
  const Ints added = normalize_axes("expand_dims", axes, rank);
  Shape shape;
  size_t next = 0;
  for (int64_t i = 0; i < rank; ++i)
    shape.push_back(std::binary_search(added.begin(), added.end(), i) ? 1 : from[next++]);
  return b_.reshape(value, std::move(shape));
}

Operand NumpyBuilder::squeeze(const Operand& x, const Axes& axes) {
  const Value value = value_of(x);
  const Shape& from = b_.shape(value);
  Ints dropped;
  if (axes) {
    dropped = normalize_axes("squeeze", axes, rank_of(from));
    for (const int64_t axis : dropped)
      if (from[axis] != 1)
        refuse_sizes({from[axis]}, concat("squeeze: cannot squeeze axis ", axis, " of ",
                                          shape_text(from), " (size ", from[axis], ", not 1)"));
  } else {
    for (int64_t i = 0; i < rank_of(from); ++i) {
      if (from[i] == 1)
        dropped.push_back(i);
      else if (from[i].least() <= 1 && from[i].bound() >= 1)
        refuse_sizes({from[i]}, concat("squeeze: cannot squeeze ", shape_text(from),
                                       " (the size of axis ", i, ", ", from[i], ", may be 1)"));
    }
  }
  return drop_axes(value, dropped);
}

Operand NumpyBuilder::broadcast_to(const Operand& x, const Shape& shape) {
  const Value value = value_of(x);
  if (b_.shape(value).size() > shape.size() ||
      broadcast_shapes("broadcast_to", b_.shape(value), shape) != shape)
    user_error(ErrorKind::Value, "broadcast_to: cannot broadcast ", shape_text(b_.shape(value)),
               " to ", shape_text(shape));
  return broadcast(value, shape);
}

Operand NumpyBuilder::concatenate(const Operands& parts, std::optional<int64_t> axis,
                                  std::optional<DType> dtype) {
  if (parts.empty()) user_error(ErrorKind::Value, "need at least one array to concatenate");
  const DType common = dtype ? *dtype : common_type("concatenate", parts);
  std::vector<Value> values;
  for (const Operand& part : parts) {
    Value value = as(part, common, "concatenate");
    values.push_back(axis ? value : reshape(value, {-1}).value);
  }
  const Shape first = b_.shape(values[0]);
  if (first.empty()) user_error(ErrorKind::Value, "zero-dimensional arrays cannot be concatenated");
  const int64_t along = axis_of("concatenate", axis.value_or(0), rank_of(first));
  for (size_t i = 1; i < values.size(); ++i) {
    const Shape& other = b_.shape(values[i]);
    if (other.size() != first.size())
      user_error(ErrorKind::Value, "concatenate: cannot join ", shape_text(first), " and ",
                 shape_text(other), " (number of dimensions: ", first.size(), " and ", other.size(),
                 ")");
    for (int64_t d = 0; d < rank_of(first); ++d)
      if (d != along && other[d] != first[d])
        refuse_sizes({first[d], other[d]},
                     concat("concatenate: cannot join ", shape_text(first), " and ",
                            shape_text(other), " along axis ", along, " (dimension ", d, ": ",
                            first[d], " and ", other[d], ")"));
  }
  // Parts without elements change nothing but the dtype.
  std::vector<Value> nonempty;
  for (const Value v : values)
    if (b_.shape(v)[along] != 0) nonempty.push_back(v);
  if (nonempty.empty()) return values[0];
  return nonempty.size() == 1 ? nonempty[0] : b_.cat(nonempty, along);
}

Operand NumpyBuilder::stack(const Operands& parts, int64_t axis) {
  if (parts.empty()) user_error(ErrorKind::Value, "need at least one array to stack");
  const Shape first = shape(parts[0]);
  const int64_t along = axis_of("stack", axis, rank_of(first) + 1);
  Operands expanded;
  for (const Operand& part : parts) {
    if (const Shape other = shape(part); other != first) {
      Shape all = first;
      all.insert(all.end(), other.begin(), other.end());
      refuse_sizes(all, concat("stack: cannot stack ", shape_text(first), " and ",
                               shape_text(other), " (all input arrays must have the same shape)"));
    }
    Operand x = expand_dims(part, {along});
    x.weak = part.weak;
    expanded.push_back(x);
  }
  return concatenate(expanded, along);
}

Value NumpyBuilder::slice_axis(Value x, int64_t axis, const Dim& low, const Dim& high) {
  DimPairs limits;
  for (const Dim& size : b_.shape(x)) limits.emplace_back(0, size);
  limits[axis] = {low, high};
  return b_.shrink(x, std::move(limits));
}

Value NumpyBuilder::flip_axis(Value x, int64_t axis) {
  return b_.flip(x, {axis});
}

Operand NumpyBuilder::roll(const Operand& x, const Ints& shifts, const Axes& axes) {
  Value value = value_of(x);
  const Shape whole = b_.shape(value);
  if (!axes) value = reshape(value, {-1}).value;
  const Ints along = axes.value_or(Ints{0});
  if (shifts.size() != along.size() && shifts.size() != 1 && along.size() != 1)
    user_error(ErrorKind::Value, "roll: cannot pair ", shifts.size(), " shifts with ", along.size(),
               " axes");
  const size_t pairs = shifts.size() == 1 ? along.size() : shifts.size();
  for (size_t i = 0; i < pairs; ++i) {
    const int64_t axis =
        axis_of("roll", along[along.size() == 1 ? 0 : i], rank_of(b_.shape(value)));
    const Dim size = b_.shape(value)[axis];
    if (size == 0) continue;
    const int64_t by = shifts[shifts.size() == 1 ? 0 : i];
    if (by == 0) continue;
    if (!size.is_constant() && (by <= -size.least() || by >= size.least())) {
      const Operand from = ufunc("subtract", {count_to(size), Literal::of(by)})[0];
      const Operand at = ufunc("remainder", {from, size_of(size)})[0];
      value = take_unchecked(value, at, axis).value;
      continue;
    }
    const Dim shift = size.is_constant()
                          ? Dim(((by % size.constant()) + size.constant()) % size.constant())
                          : from_end(by, size);
    if (shift == 0) continue;
    value = b_.cat(
        {slice_axis(value, axis, size - shift, size), slice_axis(value, axis, 0, size - shift)},
        axis);
  }
  return axes ? value : b_.reshape(value, whole);
}

Operand NumpyBuilder::repeat(const Operand& x, int64_t repeats, std::optional<int64_t> axis) {
  if (repeats < 0) user_error(ErrorKind::Value, "repeats may not contain negative values.");
  Value value = value_of(x);
  if (!axis) value = reshape(value, {-1}).value;
  const Shape from = b_.shape(value);
  const int64_t along = axis_of("repeat", axis.value_or(0), rank_of(from));
  Shape split = from, spread, merged = from;
  split.insert(split.begin() + along + 1, 1);
  spread = split;
  spread[along + 1] = repeats;
  merged[along] = from[along] * repeats;
  return b_.reshape(b_.expand(b_.reshape(value, split), spread), merged);
}

Operand NumpyBuilder::tile(const Operand& x, Ints repeats) {
  Value value = value_of(x);
  Shape from = b_.shape(value);
  const size_t rank = std::max(from.size(), repeats.size());
  from.insert(from.begin(), rank - from.size(), 1);
  repeats.insert(repeats.begin(), rank - repeats.size(), 1);
  Shape split, spread, merged;
  for (size_t i = 0; i < rank; ++i) {
    if (repeats[i] < 0) user_error(ErrorKind::Value, "tile: cannot repeat ", repeats[i], " times");
    split.insert(split.end(), {1, from[i]});
    spread.insert(spread.end(), {repeats[i], from[i]});
    merged.push_back(from[i] * repeats[i]);
  }
  return b_.reshape(b_.expand(b_.reshape(value, split), spread), merged);
}

Operand NumpyBuilder::pad(const Operand& x, const DimPairs& widths, const std::string& mode,
                          const Operand& fill) {
  Value value = value_of(x);
  const Shape from = b_.shape(value);
  if (widths.size() != from.size())
    user_error(ErrorKind::Value, "pad: cannot pad ", shape_text(from), " by ", widths.size(),
               " pairs of widths");
  for (const auto& [before, after] : widths)
    if (before.least() < 0 || after.least() < 0)
      refuse_sizes({before, after}, "index can't contain negative values");
  if (mode == "constant") {
    const Value padded = b_.pad(value, widths);
    const bool zero = fill.literal && fill.literal->real == 0;
    if (zero || is_bool(b_.dtype(value))) {
      if (!zero) user_error(ErrorKind::Unsupported, "pad: cannot trace bool with constant_values");
      return padded;
    }
    const Value inside = b_.pad(b_.full(Scalar::of(DType::Bool, true), from), widths);
    return elementwise(AluOp::Where, {inside, padded, as(fill, b_.dtype(value), "pad")});
  }
  for (int64_t axis = 0; axis < rank_of(from); ++axis) {
    const auto& [before, after] = widths[axis];
    if (before == 0 && after == 0) continue;
    const Dim& size = from[axis];
    std::vector<Value> parts{value};
    const auto flipped = [&](const Dim& low, const Dim& high) {
      return b_.flip(slice_axis(value, axis, low, high), {axis});
    };
    const auto repeated = [&](const Dim& at, const Dim& count) {
      const Value edge = slice_axis(value, axis, at, at + 1);
      Shape shape = b_.shape(edge);
      shape[axis] = count;
      return b_.expand(edge, shape);
    };
    const Dim most = mode == "reflect" ? size - 1 : size;
    if (mode != "edge" && !(always_at_most(before, most) && always_at_most(after, most)))
      user_error(ErrorKind::Unsupported, "pad: cannot trace mode ", mode, " beyond ", most,
                 " elements (asked for ", before, " and ", after, ")");
    if (size.least() <= 0)
      refuse_sizes({size},
                   concat("pad: cannot extend the empty axis ", axis, " (size ", size, ")"));
    Value low, high;
    if (mode == "edge") {
      if (before != 0) low = repeated(0, before);
      if (after != 0) high = repeated(size - 1, after);
    } else if (mode == "reflect") {
      if (before != 0) low = flipped(1, before + 1);
      if (after != 0) high = flipped(size - 1 - after, size - 1);
    } else if (mode == "symmetric") {
      if (before != 0) low = flipped(0, before);
      if (after != 0) high = flipped(size - after, size);
    } else if (mode == "wrap") {
      if (before != 0) low = slice_axis(value, axis, size - before, size);
      if (after != 0) high = slice_axis(value, axis, 0, after);
    } else {
      user_error(ErrorKind::Unsupported, "pad: cannot trace mode ", mode);
    }
    if (before != 0) parts.insert(parts.begin(), low);
    if (after != 0) parts.push_back(high);
    value = b_.cat(parts, axis);
  }
  return value;
}

Operand NumpyBuilder::diagonal(const Operand& x, int64_t offset, int64_t axis1, int64_t axis2) {
  const int64_t rank = rank_of(shape(x));
  if (rank < 2) user_error(ErrorKind::Value, "diag requires an array of at least two dimensions");
  const int64_t a = axis_of("diagonal", axis1, rank), b = axis_of("diagonal", axis2, rank);
  if (a == b) user_error(ErrorKind::Value, "axis1 and axis2 cannot be the same");
  Value value = moveaxis(x, {a, b}, {-2, -1}).value;
  const Shape from = b_.shape(value);
  const Dim &rows = from[rank - 2], &columns = from[rank - 1];
  const Dim row = clamp("diagonal", -offset, 0, rows),
            column = clamp("diagonal", offset, 0, columns);
  const Dim size = smaller("diagonal", rows - row, columns - column);
  value = slice_axis(value, rank - 2, row, row + size);
  value = slice_axis(value, rank - 1, column, column + size);
  Shape outer(from.begin(), from.end() - 2);
  Shape flat = outer, wide = outer, result = outer;
  flat.push_back(product("diagonal", size, size));
  wide.insert(wide.end(), {size, size + 1});
  result.push_back(size);
  if (size == 0) return b_.reshape(value, result);
  DimPairs widths(flat.size(), {0, 0});
  widths.back().second = size;
  value = b_.reshape(b_.pad(b_.reshape(value, flat), widths), wide);
  return b_.reshape(slice_axis(value, rank - 1, 0, 1), result);
}

Operand NumpyBuilder::windows(const Operand& x, int64_t size, int64_t axis) {
  const Value value = value_of(x);
  const Shape& whole = b_.shape(value);
  const int64_t along = axis_of("windows", axis, rank_of(whole));
  if (!is_constant(whole))
    refuse_sizes(whole,
                 concat("windows: cannot take ", size, " of each element of ", shape_text(whole)));
  rune::View view{constants_of(whole), {}, 0, {}};
  if (size < 1 || size > view.shape[along])
    user_error(ErrorKind::Value, "windows: cannot take ", size, " of ", view.shape[along],
               " elements (axis ", along, ")");
  view.strides = contiguous_strides(whole);
  view.strides.push_back(view.strides[along]);
  view.shape[along] -= size - 1;
  view.shape.push_back(size);
  return b_.add(graph::View{ShapeTracker{{std::move(view)}}}, {value});
}

}  // namespace rune::graph
