#include "schedule/indexing/indexing.h"

#include <algorithm>
#include <type_traits>

#include "base/error.h"
#include "graph/infer.h"

namespace rune::schedule {

using graph::Graph;
using graph::Node;
using graph::NodeKind;
using graph::Value;
using sym::Expr;
using sym::Mask;

Evaluation evaluation_of(const Node& node) {
  switch (node.kind()) {
    case NodeKind::Binop:
    case NodeKind::Unary:
    case NodeKind::Ternary:
    case NodeKind::Cast:
    case NodeKind::Bitcast:
    case NodeKind::Custom: return Evaluation::Alu;
    case NodeKind::Reshape:
    case NodeKind::Permute:
    case NodeKind::Expand:
    case NodeKind::Pad:
    case NodeKind::Shrink:
    case NodeKind::Flip:
    case NodeKind::View:
    case NodeKind::Contiguous: return Evaluation::Forward;
    case NodeKind::Copy: return Evaluation::Moved;
    case NodeKind::Cat: return Evaluation::Select;
    case NodeKind::Const_Scalar: return Evaluation::Constant;
    case NodeKind::Iota: return Evaluation::Counted;
    case NodeKind::Define_Var: return Evaluation::Variable;
    case NodeKind::Reduce_Axis:
    case NodeKind::Contract: return Evaluation::Reduction;
    case NodeKind::Placeholder:
    case NodeKind::Vconst: return Evaluation::Memory;
    case NodeKind::Gather: return Evaluation::Gathered;
    case NodeKind::Scatter: return Evaluation::Scattered;
    case NodeKind::Scan: return Evaluation::Scanned;
    case NodeKind::Host_Callback:
    case NodeKind::Loop_Nest: return Evaluation::Called;
    case NodeKind::Sink: RUNE_SOURCE_CASES break;
  }
  RUNE_UNREACHABLE(graph::name_of(node.kind()), " has no element");
}

Expr size_expr(const Graph& graph, const Dim& size) {
  Expr result(size.offset());
  for (const Dim::Term& term : size.terms()) {
    const uint32_t id = kFirstSizeVariable + graph.definition(term.var).id;
    result = result + Expr::variable(id, {term.var.min_val, term.var.max_val}) * term.coefficient;
  }
  return result;
}

Expr flatten_index(const Index& index, const Shape& shape) {
  return sym::flatten_index(index, bounds_of(shape));
}

Index unflatten_index(const Expr& position, const Shape& shape) {
  return sym::unflatten_index(position, bounds_of(shape));
}

namespace {

Index reshape_index(const Index& index, const Shape& from, const Shape& to) {
  // Unchanged axes at the beginning and the end keep their coordinates, even beyond the end, where
  // those of masked lanes may be.
  Index result(to.size());
  size_t first = 0, first_to = 0, end = from.size(), end_to = to.size();
  while (first < end && first_to < end_to) {
    if (from[first] == to[first_to])
      result[first_to++] = index[first++];
    else if (from[first] == Dim(1))
      ++first;
    else if (to[first_to] == Dim(1))
      ++first_to;
    else
      break;
  }
  while (first < end && first_to < end_to) {
    if (from[end - 1] == to[end_to - 1])
      result[--end_to] = index[--end];
    else if (from[end - 1] == Dim(1))
      --end;
    else if (to[end_to - 1] == Dim(1))
      --end_to;
    else
      break;
  }
  const auto part = [](const auto& list, size_t begin, size_t past) {
    return std::decay_t<decltype(list)>(list.begin() + begin, list.begin() + past);
  };
  const Expr position = flatten_index(part(index, first, end), part(from, first, end));
  const Index middle = unflatten_index(position, part(to, first_to, end_to));
  std::copy(middle.begin(), middle.end(), result.begin() + first_to);
  return result;
}

std::vector<Access> cat_accesses(const Graph& graph, const Node& node, const Index& index) {
  const auto axis = static_cast<size_t>(node.as<graph::Cat>()->axis);
  std::vector<Access> result;
  Dim start = 0;
  for (const Value part : node.inputs) {
    const Dim end = start + graph[part].shape()[axis];
    Access access{part, index, {}};
    access.index[axis] = index[axis] - size_expr(graph, start);
    if (start != 0) access.mask.require_nonnegative(access.index[axis]);
    if (end != node.shape()[axis])
      access.mask.require_nonnegative(size_expr(graph, end) - 1 - index[axis]);
    // (The only index of an axis of size 1. All parts of a chain of nodes share it.)
    if (end - start == 1) access.index[axis] = Expr(0);
    if (!access.mask.is_false()) result.push_back(std::move(access));
    start = end;
  }
  return result;
}

// Follows a tracker from the index of its last view to the linear position in the buffer.
Expr tracker_position(const ShapeTracker& tracker, Index index, Mask& mask) {
  Expr position;
  for (size_t v = tracker.views.size(); v-- > 0;) {
    const View& view = tracker.views[v];
    if (v + 1 < tracker.views.size()) index = sym::unflatten_index(position, view.shape);
    position = Expr(view.offset);
    for (size_t i = 0; i < index.size(); ++i) {
      if (view.mask) mask.require_between(index[i], (*view.mask)[i].first, (*view.mask)[i].second);
      position = position + index[i] * view.strides[i];
    }
  }
  return position;
}

Access forward_access(const Graph& graph, const Node& node, const Index& index) {
  const Value input = node.inputs[0];
  const Shape& from = graph[input].shape();
  Access access{input, index, {}};
  switch (node.kind()) {
    case NodeKind::Reshape: access.index = reshape_index(index, node.shape(), from); break;
    case NodeKind::Permute: {
      const Ints& axes = node.as<graph::Permute>()->axes;
      for (size_t i = 0; i < axes.size(); ++i) access.index[axes[i]] = index[i];
      break;
    }
    case NodeKind::Expand:
      for (size_t i = 0; i < from.size(); ++i)
        if (from[i] == 1) access.index[i] = Expr(0);
      break;
    case NodeKind::Pad: {
      const graph::DimPairs& widths = node.as<graph::Pad>()->widths;
      for (size_t i = 0; i < from.size(); ++i) {
        access.index[i] = index[i] - size_expr(graph, widths[i].first);
        if (widths[i].first != 0) access.mask.require_nonnegative(access.index[i]);
        if (widths[i].second != 0)
          access.mask.require_nonnegative(size_expr(graph, from[i]) - 1 - access.index[i]);
        if (from[i] == 1) access.index[i] = Expr(0);
      }
      break;
    }
    case NodeKind::Shrink: {
      const graph::DimPairs& limits = node.as<graph::Shrink>()->limits;
      for (size_t i = 0; i < from.size(); ++i)
        access.index[i] = index[i] + size_expr(graph, limits[i].first);
      break;
    }
    case NodeKind::Flip:
      for (const int64_t axis : node.as<graph::Flip>()->axes)
        access.index[axis] = size_expr(graph, from[axis]) - 1 - index[axis];
      break;
    case NodeKind::View: {
      const Expr position = tracker_position(node.as<graph::View>()->tracker, index, access.mask);
      access.index = unflatten_index(position, from);
      break;
    }
    default: break;  // the operand has the same index
  }
  return access;
}

}  // namespace

std::vector<Access> operand_accesses(const Graph& graph, Value v, const Index& index) {
  const Node& node = graph[v];
  if (node.kind() == NodeKind::Cat) return cat_accesses(graph, node, index);
  std::vector<Access> result;
  result.reserve(node.inputs.size());
  if (evaluation_of(node) == Evaluation::Forward) {
    result.push_back(forward_access(graph, node, index));
    return result;
  }
  for (const Value input : node.inputs) result.push_back({input, index, {}});
  return result;
}

std::vector<Access> reduction_accesses(const Graph& graph, Value v, const Index& index,
                                       const Index& inner) {
  const Node& node = graph[v];
  if (const auto* reduce = node.as<graph::Reduce_Axis>()) {
    Access access{node.inputs[0], index, {}};
    for (size_t i = 0; i < reduce->axes.size(); ++i) access.index[reduce->axes[i]] = inner[i];
    return {std::move(access)};
  }
  const auto& contract = *node.as<graph::Contract>();
  std::vector<Access> result;
  size_t free = contract.batch.size();
  for (size_t operand = 0; operand < 2; ++operand) {
    const auto axis_of = [operand](const std::pair<int64_t, int64_t>& pair) {
      return static_cast<size_t>(operand == 0 ? pair.first : pair.second);
    };
    const size_t rank = graph[node.inputs[operand]].shape().size();
    Access access{node.inputs[operand], Index(rank), {}};
    for (size_t i = 0; i < contract.batch.size(); ++i) {
      access.index[axis_of(contract.batch[i])] = index[i];
    }
    for (size_t i = 0; i < contract.contract.size(); ++i) {
      access.index[axis_of(contract.contract[i])] = inner[i];
    }
    for (const int64_t axis : graph::free_axes(contract, operand, rank))
      access.index[axis] = index[free++];
    result.push_back(std::move(access));
  }
  return result;
}

std::vector<Access> gathered_accesses(const Graph& graph, Value v, const Index& index,
                                      const Expr& position) {
  const Node& node = graph[v];
  const size_t indices_rank = graph[node.inputs[1]].shape().size();
  const auto first = index.begin() + node.as<graph::Gather>()->axis;
  const auto last = first + static_cast<int64_t>(indices_rank);
  Index at(index.begin(), first);
  at.push_back(position);
  at.insert(at.end(), last, index.end());
  return {{node.inputs[1], Index(first, last), {}}, {node.inputs[0], std::move(at), {}}};
}

Dim gathered_extent(const Graph& graph, Value v) {
  const Node& node = graph[v];
  return graph[node.inputs[0]].shape()[node.as<graph::Gather>()->axis];
}

std::vector<Access> scattered_accesses(const Graph& graph, Value v, const Index& index,
                                       const Expr& number) {
  const Node& node = graph[v];
  const auto& scatter = *node.as<graph::Scatter>();
  const Shape& indices = graph[node.inputs[1]].shape();
  const int64_t batch = scatter.batch_rank();
  const Index own = unflatten_index(number, Shape(indices.begin() + batch, indices.end()));
  Index at(index.begin(), index.begin() + batch), update = index;
  at.insert(at.end(), own.begin(), own.end());
  const auto axis = update.erase(update.begin() + scatter.axis);
  update.insert(axis, own.begin(), own.end());
  return {{node.inputs[1], std::move(at), {}}, {node.inputs[2], std::move(update), {}}};
}

std::vector<Access> scanned_accesses(const Graph& graph, Value v, const Index& index) {
  const Node& node = graph[v];
  std::vector<Access> result{{node.inputs[0], index, {}}};
  if (node.inputs.size() == 1) return result;
  result.push_back({node.inputs[1], index, {}});
  result[1].index[node.as<graph::Scan>()->axis] = Expr(0);
  return result;
}

bool is_sequential(const Node& node) {
  return node.as<graph::Scatter>() || node.as<graph::Scan>();
}

int64_t sequential_axis(const Node& node) {
  const auto* scatter = node.as<graph::Scatter>();
  return scatter ? scatter->axis : node.as<graph::Scan>()->axis;
}

ReduceOp reduction_op(const Node& node) {
  const auto* reduce = node.as<graph::Reduce_Axis>();
  return reduce ? reduce->op : ReduceOp::Add;
}

Shape reduced_shape(const Graph& graph, Value v) {
  const Node& node = graph[v];
  if (const auto* scatter = node.as<graph::Scatter>()) {
    const Shape& indices = graph[node.inputs[1]].shape();
    Dim count = 1;
    for (size_t i = scatter->batch_rank(); i < indices.size(); ++i)
      count = product("scatter", count, indices[i]);
    return {count};
  }
  const Shape& from = graph[node.inputs[0]].shape();
  Shape result;
  if (const auto* reduce = node.as<graph::Reduce_Axis>()) {
    for (const int64_t axis : reduce->axes) result.push_back(from[axis]);
  } else {
    for (const auto& pair : node.as<graph::Contract>()->contract)
      result.push_back(from[pair.first]);
  }
  return result;
}

}  // namespace rune::schedule
