// Type inference for the nodes that move, select and index elements.
#include <algorithm>

#include "graph/infer.h"
#include "graph/infer_detail.h"

namespace rune::graph {

bool holds_iota(DType dtype, const Shape& shape) {
  const int64_t last = std::max<int64_t>(0, shape[0].bound() - 1);
  return Scalar::of(dtype, last).as_int64() == last;
}

namespace detail {

namespace {

// Checks one view of `count` elements: ranks, mask, and that no unmasked index leaves the elements.
void check_view(const char* op, const rune::View& view, size_t number, int64_t count) {
  check_sizes(op, to_shape(view.shape));
  if (view.strides.size() != view.shape.size())
    user_error(ErrorKind::Value, op, ": cannot give ", shape_text(view.strides), " as strides of ",
               shape_text(view.shape), " (view ", number,
               ", number of dimensions: ", view.strides.size(), " and ", view.shape.size(), ")");
  if (view.mask && view.mask->size() != view.shape.size())
    user_error(ErrorKind::Value, op, ": cannot mask ", shape_text(view.shape), " by ",
               text::to_text(*view.mask), " (view ", number,
               ", number of dimensions: ", view.shape.size(), " and ", view.mask->size(), ")");
  int64_t low = view.offset, high = view.offset;
  bool empty = false;
  for (size_t i = 0; i < view.shape.size(); ++i) {
    const auto [begin, end] = view.mask ? (*view.mask)[i] : std::pair{int64_t{0}, view.shape[i]};
    if (begin < 0 || end > view.shape[i] || begin > end)
      user_error(ErrorKind::Value, op, ": cannot mask ", shape_text(view.shape), " by ",
                 text::to_text(*view.mask), " (view ", number, ", dimension ", i, ": [", begin, ",",
                 end, ") of ", view.shape[i], ")");
    if (begin == end) {
      empty = true;
      continue;
    }
    const int64_t first = view.strides[i] * begin, last = view.strides[i] * (end - 1);
    low += std::min(first, last);
    high += std::max(first, last);
  }
  if (!empty && (low < 0 || high >= count))
    user_error(ErrorKind::Value, op, ": cannot read elements [", low, ",", high + 1, ") of ", count,
               " (view ", number, ": ", text::to_text(view), ")");
}

void check_tracker(const char* op, const ShapeTracker& tracker, const Shape& operand) {
  if (tracker.views.empty())
    user_error(ErrorKind::Value, op, ": cannot view ", shape_text(operand),
               " through a tracker of no views (views: 0, at least 1 is needed)");
  check_constant(op, operand);
  int64_t count = max_elements(operand);
  for (size_t i = 0; i < tracker.views.size(); ++i) {
    check_view(op, tracker.views[i], i, count);
    count = num_elements(tracker.views[i].shape);
  }
}

// Whether an element has the same row-major position in `from` and in `to`, if positions are
// computed with the sizes' bounds. That holds if both consist of the same factors, where a factor
// is a size with the constant sizes after it.
bool keeps_order(const Shape& from, const Shape& to) {
  if (is_constant(from) && is_constant(to)) return max_elements(from) == max_elements(to);
  const Dim none(0), one(1);
  const bool empty = contains(from, none);
  if (empty != contains(to, none)) return false;
  if (empty) return true;
  Shape a = from, b = to;
  std::erase(a, one);
  std::erase(b, one);
  for (size_t i = 0, j = 0; i < a.size() || j < b.size(); ++i, ++j) {
    if (i == a.size() || j == b.size()) return false;
    Dim x = a[i], y = b[j];
    while (x != y) {
      const bool first = x.bound() < y.bound();
      const Shape& more = first ? a : b;
      size_t& next = first ? i : j;
      if (x.bound() == y.bound()) return false;
      ++next;
      if (next == more.size() || !more[next].is_constant()) return false;
      (first ? x : y) = (first ? x : y) * more[next].constant();
    }
  }
  return true;
}

// The source's shape with `axis` replaced by the indices' dimensions.
Shape indexed_shape(const Shape& source, const Shape& indices, int64_t axis) {
  Shape shape(source.begin(), source.begin() + axis);
  shape.insert(shape.end(), indices.begin(), indices.end());
  shape.insert(shape.end(), source.begin() + axis + 1, source.end());
  return shape;
}

}  // namespace

Metadata infer_node(const Iota& node, const Operands&) {
  check_sizes("iota", node.shape);
  if (node.shape.size() != 1)
    user_error(ErrorKind::Value, "iota: cannot count along ", shape_text(node.shape),
               " (number of dimensions: ", node.shape.size(), ", expected 1)");
  if (!is_integer(node.target))
    user_error(ErrorKind::Type, "iota: cannot count in ", numpy_name(node.target),
               " (it is not an integer dtype)");
  if (!holds_iota(node.target, node.shape))
    user_error(ErrorKind::Value, "iota: cannot convert ", node.shape[0].bound() - 1, " to ",
               numpy_name(node.target), " (it does not hold the last number)");
  return result(node.target, node.shape);
}

Metadata infer_node(const View& node, const Operands& in) {
  check_tracker("view", node.tracker, in.shape(0));
  return result(in.dtype(0), to_shape(node.tracker.shape()));
}

Metadata infer_node(const Reshape& node, const Operands& in) {
  check_sizes("reshape", node.shape);
  const Shape& from = in.shape(0);
  if (!keeps_order(from, node.shape)) {
    const std::string message =
        concat("reshape: cannot reshape ", shape_text(from), " to ", shape_text(node.shape));
    if (is_constant(from) && is_constant(node.shape))
      user_error(ErrorKind::Value, message, " (number of elements: ", max_elements(from), " and ",
                 max_elements(node.shape), ")");
    Shape all = from;
    all.insert(all.end(), node.shape.begin(), node.shape.end());
    refuse_sizes(all, message + " (a symbolic size merges with constants inside of it only)");
  }
  return result(in.dtype(0), node.shape);
}

Metadata infer_node(const Permute& node, const Operands& in) {
  const Shape& from = in.shape(0);
  check_entries("permute", "axes", node.axes.size(), from);
  check_axes("permute", node.axes, from);
  Shape shape;
  for (const int64_t axis : node.axes) shape.push_back(from[axis]);
  return result(in.dtype(0), std::move(shape));
}

Metadata infer_node(const Expand& node, const Operands& in) {
  const Shape& from = in.shape(0);
  check_sizes("expand", node.shape);
  for (size_t i = 0; i < std::min(from.size(), node.shape.size()); ++i)
    if (from[i] != node.shape[i] && from[i] != 1)
      refuse_sizes({from[i], node.shape[i]},
                   concat("expand: cannot expand ", shape_text(from), " to ",
                          shape_text(node.shape), " (dimension ", i, ": ", from[i], " and ",
                          node.shape[i], ")\nhint: only dimensions of size 1 expand"));
  if (from.size() != node.shape.size())
    check_same_shape("expand", "expand", from, "to", node.shape);
  return result(in.dtype(0), node.shape);
}

Metadata infer_node(const Pad& node, const Operands& in) {
  Shape shape = in.shape(0);
  check_entries("pad", "widths", node.widths.size(), shape);
  for (size_t i = 0; i < shape.size(); ++i) {
    const auto& [before, after] = node.widths[i];
    if (before.least() < 0 || after.least() < 0)
      refuse_sizes({before, after},
                   concat("pad: cannot pad ", shape_text(in.shape(0)), " by ",
                          text::to_text(node.widths), " (dimension ", i, ": (", before, ",", after,
                          "))\nhint: shrink takes elements away"));
    shape[i] += before + after;
  }
  check_sizes("pad", shape);
  return result(in.dtype(0), std::move(shape));
}

Metadata infer_node(const Shrink& node, const Operands& in) {
  Shape shape = in.shape(0);
  check_entries("shrink", "limits", node.limits.size(), shape);
  for (size_t i = 0; i < shape.size(); ++i) {
    const auto& [low, high] = node.limits[i];
    if (!is_range(node.limits[i], shape[i]))
      refuse_sizes({low, high, shape[i]}, concat("shrink: cannot shrink ", shape_text(in.shape(0)),
                                                 " to ", text::to_text(node.limits), " (dimension ",
                                                 i, ": [", low, ",", high, ") of ", shape[i], ")"));
    shape[i] = high - low;
  }
  return result(in.dtype(0), std::move(shape));
}

Metadata infer_node(const Flip& node, const Operands& in) {
  check_axes("flip", node.axes, in.shape(0));
  return result(in.dtype(0), in.shape(0));
}

Metadata infer_node(const Valid& node, const Operands& in) {
  check_tracker("valid", node.tracker, in.shape(0));
  return result(DType::Bool, to_shape(node.tracker.shape()));
}

Metadata infer_node(const Index&, const Operands& in) {
  check_constant("index", in.shape(0));
  check_integer("index", "index", in.dtype(1));
  if (in.size() == 3) {
    check_same_dtype("index", DType::Bool, in.dtype(2), 2);
    check_same_shape("index", "mask indices of", in.shape(1), "by", in.shape(2));
  }
  return result(in.dtype(0), in.shape(1));
}

Metadata infer_node(const Shuffle& node, const Operands& in) {
  Shape shape = in.shape(0);
  if (shape.empty())
    user_error(ErrorKind::Value,
               "shuffle: cannot take lanes of [] (number of dimensions: 0, at least 1 "
               "is needed)");
  for (const int64_t lane : node.indices)
    if (lane < 0 || !always_at_most(Dim(lane) + 1, shape.back()))
      user_error(shape.back().is_constant() ? ErrorKind::Index : ErrorKind::Unsupported,
                 "shuffle: cannot take lanes ", text::to_text(node.indices), " of ",
                 shape_text(shape), " (dimension ", shape.size() - 1, ": ", lane, " of ",
                 shape.back(), ")");
  shape.back() = static_cast<int64_t>(node.indices.size());
  return result(in.dtype(0), std::move(shape));
}

Metadata infer_node(const Vectorize&, const Operands& in) {
  for (size_t i = 1; i < in.size(); ++i) {
    check_same_dtype("vectorize", in.dtype(0), in.dtype(i), i);
    check_same_shape("vectorize", "stack", in.shape(0), "with", in.shape(i));
  }
  Shape shape = in.shape(0);
  shape.push_back(static_cast<int64_t>(in.size()));
  check_sizes("vectorize", shape);
  return result(in.dtype(0), std::move(shape));
}

Metadata infer_node(const Cat& node, const Operands& in) {
  check_axis("cat", node.axis, in.shape(0));
  Shape shape = in.shape(0);
  for (size_t i = 1; i < in.size(); ++i) {
    check_same_dtype("cat", in.dtype(0), in.dtype(i), i);
    const Shape& part = in.shape(i);
    Shape expected = in.shape(0);
    if (part.size() == expected.size()) expected[node.axis] = part[node.axis];
    if (part != expected)
      refuse_difference(expected, part,
                        concat("cat: cannot join ", shape_text(in.shape(0)), " to ",
                               shape_text(part), " along axis ", node.axis));
    shape[node.axis] += part[node.axis];
  }
  check_sizes("cat", shape);
  return result(in.dtype(0), std::move(shape));
}

Metadata infer_node(const Gather& node, const Operands& in) {
  check_axis("gather", node.axis, in.shape(0));
  check_integer("gather", "index", in.dtype(1));
  Shape shape = indexed_shape(in.shape(0), in.shape(1), node.axis);
  check_sizes("gather", shape);
  return result(in.dtype(0), std::move(shape));
}

Metadata infer_node(const Scatter& node, const Operands& in) {
  check_axis("scatter", node.axis, in.shape(0));
  check_integer("scatter", "index", in.dtype(1));
  check_same_dtype("scatter", in.dtype(0), in.dtype(2), 2);
  const std::optional<ReduceOp> op = reduce_op(node.mode);
  if (op && !info(alu_of(*op)).accepts(in.dtype(0)))
    user_error(ErrorKind::Type, "scatter: cannot ", name_of(node.mode), " to ",
               numpy_name(in.dtype(0)), " (mode ", name_of(node.mode),
               " needs an integer or a float)");
  const Shape &target = in.shape(0), &indices = in.shape(1);
  const int64_t batch = node.batch_rank();
  if (batch < 0 || (node.batch && batch == 0) || batch > node.axis)
    user_error(ErrorKind::Value, "scatter: cannot share ", batch, " axes before axis ", node.axis);
  if (static_cast<int64_t>(indices.size()) < batch ||
      !std::equal(indices.begin(), indices.begin() + batch, target.begin()))
    user_error(ErrorKind::Value, "scatter: cannot share the first ", batch, " axes of ",
               shape_text(target), " with indices of ", shape_text(indices));
  check_same_shape("scatter", "write updates of", in.shape(2), "to elements of",
                   indexed_shape(target, Shape(indices.begin() + batch, indices.end()), node.axis));
  return result(in.dtype(0), in.shape(0));
}

}  // namespace detail

}  // namespace rune::graph
