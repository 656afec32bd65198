#include "graph/numpy/movement.h"

#include <algorithm>
#include <numeric>

namespace rune::graph::numpy {

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

// The size that gives `a` when multiplied by `b`, or nothing if there is none.
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

}  // namespace

Operand reshape(TracedGraph& t, const Operand& x, Shape shape) {
  const Value value = value_of(t, x);
  const Shape from = t.shape(value);
  int64_t unknown = -1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i].is_constant() && shape[i].constant() < 0) {  // NumPy allows more than -1
      if (unknown >= 0)
        user_error(ErrorKind::Value, "can only specify one unknown dimension (reshape to ",
                   shape_text(shape), ")");
      unknown = static_cast<int64_t>(i);
    } else if (shape[i].least() < 0) {
      refuse_sizes({shape[i]}, concat("reshape: cannot reshape ", shape_text(from), " to ",
                                      shape_text(shape), " (negative size ", shape[i], ")"));
    }
  }
  if (unknown < 0) return t.reshape(value, std::move(shape));
  shape[unknown] = -1;
  if (const auto size = quotient(count_of(from), count_of(shape))) {
    shape[unknown] = *size;
    return t.reshape(value, std::move(shape));
  }
  Shape all = from;
  all.insert(all.end(), shape.begin(), shape.end());
  refuse_sizes(all, concat("reshape: cannot reshape ", shape_text(from), " to ", shape_text(shape),
                           " (the unknown size is not known to be a whole number)"));
}

Operand transpose(TracedGraph& t, const Operand& x, const Axes& axes) {
  const Value value = value_of(t, x);
  const int64_t rank = rank_of(t.shape(value));
  Ints order = normalize_axes("transpose", axes, rank);
  if (!axes) {
    std::reverse(order.begin(), order.end());
  } else if (rank_of(*axes) != rank) {
    user_error(ErrorKind::Value, "axes don't match array (transpose of ", rank, " dimensions by ",
               shape_text(*axes), ")");
  } else {
    for (int64_t i = 0; i < rank; ++i) order[i] = axis_of("transpose", (*axes)[i], rank);
  }
  return t.permute(value, std::move(order));
}

Operand expand_dims(TracedGraph& t, const Operand& x, const Ints& axes) {
  const Value value = value_of(t, x);
  const Shape& from = t.shape(value);
  const int64_t rank = rank_of(from) + rank_of(axes);
  const Ints added = normalize_axes("expand_dims", axes, rank);
  Shape shape;
  size_t next = 0;
  for (int64_t i = 0; i < rank; ++i)
    shape.push_back(std::binary_search(added.begin(), added.end(), i) ? 1 : from[next++]);
  return t.reshape(value, std::move(shape));
}

Operand squeeze(TracedGraph& t, const Operand& x, const Axes& axes) {
  const Value value = value_of(t, x);
  const Shape& from = t.shape(value);
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
  return drop_axes(t, value, dropped);
}

Operand broadcast_to(TracedGraph& t, const Operand& x, const Shape& shape) {
  const Value value = value_of(t, x);
  const Shape& from = t.shape(value);
  if (from.size() > shape.size())
    user_error(ErrorKind::Value, "broadcast_to: cannot broadcast ", shape_text(from), " to ",
               shape_text(shape), " (it has more dimensions)");
  const Shape both = broadcast_shapes("broadcast_to", from, shape);
  for (size_t i = 0; i < shape.size(); ++i)
    if (both[i] != shape[i])
      refuse_sizes({both[i], shape[i]}, concat("broadcast_to: cannot broadcast ", shape_text(from),
                                               " to ", shape_text(shape), " (dimension ", i, ": ",
                                               both[i], " to ", shape[i], ")"));
  return broadcast(t, value, shape);
}

Operand concatenate(TracedGraph& t, const Operands& parts, std::optional<int64_t> axis,
                    std::optional<DType> dtype) {
  if (parts.empty()) user_error(ErrorKind::Value, "need at least one array to concatenate");
  const DType common = dtype ? *dtype : result_type(t, parts);
  std::vector<Value> values;
  for (const Operand& part : parts) {
    Value value = convert(t, part, common);
    values.push_back(axis ? value : reshape(t, value, {-1}).value);
  }
  const Shape first = t.shape(values[0]);
  if (first.empty()) user_error(ErrorKind::Value, "zero-dimensional arrays cannot be concatenated");
  const int64_t along = axis_of("concatenate", axis.value_or(0), rank_of(first));
  for (size_t i = 1; i < values.size(); ++i) {
    const Shape& other = t.shape(values[i]);
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
  // Parts without elements affect only the dtype.
  std::vector<Value> nonempty;
  for (const Value v : values)
    if (t.shape(v)[along] != 0) nonempty.push_back(v);
  if (nonempty.empty()) return values[0];
  return nonempty.size() == 1 ? nonempty[0] : t.cat(nonempty, along);
}

Operand stack(TracedGraph& t, const Operands& parts, int64_t axis) {
  if (parts.empty()) user_error(ErrorKind::Value, "need at least one array to stack");
  const Shape first = shape_of(t, parts[0]);
  const int64_t along = axis_of("stack", axis, rank_of(first) + 1);
  Operands expanded;
  for (const Operand& part : parts) {
    if (const Shape other = shape_of(t, part); other != first) {
      Shape all = first;
      all.insert(all.end(), other.begin(), other.end());
      refuse_sizes(all, concat("stack: cannot stack ", shape_text(first), " and ",
                               shape_text(other), " (all input arrays must have the same shape)"));
    }
    Operand x = expand_dims(t, part, {along});
    x.weak = part.weak;
    expanded.push_back(x);
  }
  return concatenate(t, expanded, along);
}

Operand pad(TracedGraph& t, const Operand& x, const DimPairs& widths) {
  const Value value = value_of(t, x);
  if (widths.size() != t.shape(value).size())
    user_error(ErrorKind::Value, "pad: cannot pad ", shape_text(t.shape(value)), " by ",
               widths.size(), " pairs of widths");
  for (const auto& [before, after] : widths)
    if (before.least() < 0 || after.least() < 0)
      refuse_sizes({before, after}, "index can't contain negative values");
  return t.pad(value, widths);
}

Operand diagonal(TracedGraph& t, const Operand& x, int64_t offset, int64_t axis1, int64_t axis2) {
  const int64_t rank = rank_of(shape_of(t, x));
  if (rank < 2) user_error(ErrorKind::Value, "diag requires an array of at least two dimensions");
  const int64_t a = axis_of("diagonal", axis1, rank), b = axis_of("diagonal", axis2, rank);
  if (a == b) user_error(ErrorKind::Value, "axis1 and axis2 cannot be the same");
  Ints order;
  for (int64_t i = 0; i < rank; ++i)
    if (i != a && i != b) order.push_back(i);
  order.insert(order.end(), {a, b});
  Value value = t.permute(value_of(t, x), std::move(order));
  const Shape from = t.shape(value);
  const Dim &rows = from[rank - 2], &columns = from[rank - 1];
  const Dim row = clamp("diagonal", -offset, 0, rows),
            column = clamp("diagonal", offset, 0, columns);
  const Dim size = smaller("diagonal", rows - row, columns - column);
  value = t.slice(value, rank - 2, row, row + size);
  value = t.slice(value, rank - 1, column, column + size);
  Shape outer(from.begin(), from.end() - 2);
  Shape flat = outer, wide = outer, result = outer;
  flat.push_back(product("diagonal", size, size));
  wide.insert(wide.end(), {size, size + 1});
  result.push_back(size);
  if (size == 0) return t.reshape(value, result);
  DimPairs widths(flat.size(), {0, 0});
  widths.back().second = size;
  value = t.reshape(t.pad(t.reshape(value, flat), widths), wide);
  return t.reshape(t.slice(value, rank - 1, 0, 1), result);
}

Operand windows(TracedGraph& t, const Operand& x, int64_t size, int64_t axis) {
  const Value value = value_of(t, x);
  const Shape& whole = t.shape(value);
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
  return t.add(graph::View{ShapeTracker{{std::move(view)}}}, {value});
}

}  // namespace rune::graph::numpy
