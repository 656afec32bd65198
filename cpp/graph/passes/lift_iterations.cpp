#include "graph/passes/lift_iterations.h"

#include <algorithm>
#include <cstdlib>

#include "graph/attribute_dims.h"
#include "graph/infer.h"
#include "graph/passes/rewrite.h"

namespace rune::graph {

namespace {

using Windows = std::vector<std::optional<Window>>;

Ints shifted(Ints axes, int64_t shift) {
  for (int64_t& axis : axes) axis += shift;
  return axes;
}

}  // namespace

bool Lifted::has_windows() const {
  return std::any_of(windows.begin(), windows.end(), [](const auto& w) { return w.has_value(); });
}

Lifter::Lifter(const Graph& graph, const LoopTree::Loop& loop, const Iterations& iterations,
               Builder& builder, const std::vector<Value>& map)
    : graph_(graph),
      iterations_(iterations),
      builder_(builder),
      map_(map),
      members_(loop.members.begin(), loop.members.end()) {
  for (const uint32_t id : members_)
    for (const Value v : graph.nodes[id].inputs) ++users_[v.id];
}

std::optional<Lifted> Lifter::lift(Value v) {
  if (!is_member(v)) return Lifted{map_[v.id], false, Windows(graph_[v].shape().size())};
  const auto known = lifted_.find(v.id);
  if (known != lifted_.end()) return known->second;
  builder_.set_location(graph_[v].location);
  const std::optional<Lifted> lifted = lift_node(graph_[v], users_[v.id]);
  if (lifted) lifted_[v.id] = *lifted;
  return lifted;
}

Value Lifter::by_iteration(const Lifted& lifted) {
  if (lifted.by_iteration) return lifted.value;
  Shape shape = builder_.shape(lifted.value);
  shape.insert(shape.begin(), Dim(1));
  const Value one = builder_.reshape(lifted.value, shape);
  shape[0] = trip();
  return builder_.expand(one, std::move(shape));
}

bool Lifter::decides_sizes(const Node& node) const {
  bool result = false;
  for_each_dim(node, [&](const Dim& size) { result |= iterations_.decide(size); });
  return result;
}

std::optional<Lifted> Lifter::lift_node(const Node& node, int num_users) {
  if (node.meta.device || node.inputs.empty()) return std::nullopt;
  if (node.as<Shrink>()) return lift_part(node);
  Operands inputs;
  bool is_uniform = !decides_sizes(node), has_windows = false;
  for (const Value v : node.inputs) {
    auto lifted = lift(v);
    if (!lifted) return std::nullopt;
    is_uniform &= !lifted->by_iteration;
    has_windows |= lifted->has_windows();
    inputs.push_back(*std::move(lifted));
  }
  if (is_uniform && !has_windows) return lift_uniform(node, inputs);
  const auto is_large = [&](const Lifted& lifted) {
    return max_elements(builder_.shape(lifted.value)) > kMostElements;
  };
  if (node.as<Contract>() && std::any_of(inputs.begin(), inputs.end(), is_large))
    return std::nullopt;
  const auto result = lift_operation(node, inputs);
  const bool is_stored = node.as<Reduce_Axis>() || node.as<Contract>() || num_users > 1;
  if (result && is_stored && !is_movement(node.kind()) && is_large(*result)) return std::nullopt;
  return result;
}

// Lifts a node that is the same in all iterations.
std::optional<Lifted> Lifter::lift_uniform(const Node& node, const Operands& inputs) {
  const bool is_known = is_movement(node.kind()) || node.as<Unary>() || node.as<Binop>() ||
                        node.as<Ternary>() || node.as<Cast>() || node.as<Bitcast>() ||
                        node.as<Reduce_Axis>() || node.as<Contract>();
  if (!is_known) return std::nullopt;
  std::vector<Value> operands;
  for (const Lifted& input : inputs) operands.push_back(input.value);
  return Lifted{builder_.copy(node, std::move(operands)), false, Windows(node.shape().size())};
}

std::optional<Lifted> Lifter::lift_operation(const Node& node, const Operands& inputs) {
  const Lifted& x = inputs[0];
  switch (node.kind()) {
    case NodeKind::Unary:
    case NodeKind::Binop:
    case NodeKind::Ternary:
    case NodeKind::Cast:
    case NodeKind::Bitcast: return lift_elementwise(node, inputs);
    case NodeKind::Reshape: return lift_reshape(graph_[node.inputs[0]].shape(), node.shape(), x);
    case NodeKind::Expand: return lift_expand(graph_[node.inputs[0]].shape(), node.shape(), x);
    case NodeKind::Permute: return lift_permute(node.as<Permute>()->axes, x);
    case NodeKind::Reduce_Axis: return lift_reduce(*node.as<Reduce_Axis>(), x);
    case NodeKind::Contract: return lift_contract(*node.as<Contract>(), x, inputs[1]);
    default: return lift_fixed(node, inputs);
  }
}

// Lifts movement that supports only axes of fixed sizes.
std::optional<Lifted> Lifter::lift_fixed(const Node& node, const Operands& inputs) {
  if (decides_sizes(node)) return std::nullopt;
  std::vector<Value> parts;
  for (const Lifted& input : inputs) {
    if (input.has_windows()) return std::nullopt;
    parts.push_back(by_iteration(input));
  }
  const auto made = [&](Value v) { return Lifted{v, true, Windows(node.shape().size())}; };
  switch (node.kind()) {
    case NodeKind::Pad: {
      DimPairs widths = node.as<Pad>()->widths;
      widths.insert(widths.begin(), {0, 0});
      return made(builder_.pad(parts[0], std::move(widths)));
    }
    case NodeKind::Flip: return made(builder_.flip(parts[0], shifted(node.as<Flip>()->axes, 1)));
    case NodeKind::Cat: return made(builder_.cat(std::move(parts), node.as<Cat>()->axis + 1));
    case NodeKind::View: return lift_view(*node.as<View>(), parts[0]);
    default: return std::nullopt;
  }
}

// Lifts an elementwise operation. Operands have windows along the same axes; windows with several
// elements must be equal.
std::optional<Lifted> Lifter::lift_elementwise(const Node& node, const Operands& inputs) {
  Lifted result{{}, false, Windows(node.shape().size())};
  Shape shape = node.shape();
  for (const Lifted& input : inputs) {
    result.by_iteration |= input.by_iteration;
    for (size_t d = 0; d < shape.size(); ++d) {
      std::optional<Window>& known = result.windows[d];
      const std::optional<Window>& window = input.windows[d];
      if (!window || (known && window->is_uniform)) continue;
      const Dim& size = size_of(input, static_cast<int64_t>(d));
      if (known && !known->is_uniform && (known->low != window->low || shape[d] != size))
        return std::nullopt;
      known = window;
      shape[d] = size;
    }
  }
  if (result.by_iteration) shape.insert(shape.begin(), trip());
  std::vector<Value> operands;
  for (const Lifted& input : inputs) {
    const Value x = result.by_iteration ? by_iteration(input) : input.value;
    operands.push_back(builder_.expand(x, shape));
  }
  result.value = builder_.copy(node, std::move(operands));
  return result;
}

// Lifts a reshape that adds or removes axes of size 1, or that changes only axes without windows.
std::optional<Lifted> Lifter::lift_reshape(const Shape& from, const Shape& to, const Lifted& x) {
  Lifted result{{}, x.by_iteration, Windows(to.size())};
  Shape shape;
  if (x.by_iteration) shape.push_back(trip());
  if (!x.has_windows()) {
    for (const Dim& size : to) {
      if (iterations_.decide(size)) return std::nullopt;
      shape.push_back(size);
    }
    result.value = builder_.reshape(x.value, std::move(shape));
    return result;
  }
  size_t axis = 0;  // the present axis of `from`
  const auto skip = [&] {
    while (axis < from.size() && from[axis] == Dim(1)) ++axis;
  };
  for (size_t d = 0; d < to.size(); ++d) {
    if (to[d] == Dim(1)) {
      shape.emplace_back(1);
      continue;
    }
    skip();
    if (axis == from.size() || from[axis] != to[d]) return std::nullopt;
    result.windows[d] = x.windows[axis];
    shape.push_back(size_of(x, static_cast<int64_t>(axis++)));
  }
  skip();
  if (axis != from.size()) return std::nullopt;
  result.value = builder_.reshape(x.value, std::move(shape));
  return result;
}

std::optional<Lifted> Lifter::lift_expand(const Shape& from, const Shape& to, const Lifted& x) {
  Lifted result{{}, x.by_iteration, x.windows};
  Shape shape;
  if (x.by_iteration) shape.push_back(trip());
  for (size_t d = 0; d < to.size(); ++d) {
    const Dim& size = size_of(x, static_cast<int64_t>(d));
    const bool is_variable = iterations_.decide(to[d]);
    if (is_variable && !x.windows[d]) {
      if (from[d] != Dim(1)) return std::nullopt;
      result.windows[d] = Window{0, to[d], true};
    }
    shape.push_back(is_variable ? size : to[d]);
  }
  result.value = builder_.expand(x.value, std::move(shape));
  return result;
}

std::optional<Lifted> Lifter::lift_permute(const Ints& axes, const Lifted& x) {
  Lifted result{{}, x.by_iteration, {}};
  Ints order;
  if (x.by_iteration) order.push_back(0);
  for (const int64_t axis : axes) {
    order.push_back(axis_of(x, axis));
    result.windows.push_back(x.windows[axis]);
  }
  result.value = builder_.permute(x.value, std::move(order));
  return result;
}

std::optional<Lifted> Lifter::lift_reduce(const Reduce_Axis& reduce, const Lifted& x) {
  for (const int64_t axis : reduce.axes)
    if (x.windows[axis]) return std::nullopt;
  const Value value = builder_.reduce(reduce.op, x.value, shifted(reduce.axes, axis_of(x, 0)));
  return Lifted{value, x.by_iteration, x.windows};
}

// Lifts a View: each iteration reads its part of the operand through the tracker.
std::optional<Lifted> Lifter::lift_view(const View& view, Value x) {
  ShapeTracker tracker = view.tracker;
  if (!trip().is_constant() || !is_constant(builder_.shape(x))) return std::nullopt;
  const int64_t count = trip().constant();
  // An index goes through the views from the last to the first. Each gives a position in the view
  // before it.
  int64_t below = max_elements(builder_.shape(x)) / count;
  for (rune::View& each : tracker.views) {
    each.shape.insert(each.shape.begin(), count);
    each.strides.insert(each.strides.begin(), below);
    if (each.mask) each.mask->insert(each.mask->begin(), {0, count});
    below = num_elements(each.shape) / count;
  }
  const size_t rank = view.tracker.shape().size();
  return Lifted{builder_.add(View{std::move(tracker)}, {x}), true, Windows(rank)};
}

std::optional<Lifted> Lifter::lift_contract(const Contract& contract, const Lifted& a,
                                            const Lifted& b) {
  Pairs pairs = contract.contract, batch = contract.batch;
  for (Pairs* list : {&pairs, &batch})
    for (auto& [of_a, of_b] : *list) {
      if (a.windows[of_a] || b.windows[of_b]) return std::nullopt;
      of_a = axis_of(a, of_a), of_b = axis_of(b, of_b);
    }
  Lifted result{{}, a.by_iteration || b.by_iteration, Windows(batch.size())};
  const Ints rest_of_a = free_axes(contract, 0, a.windows.size());
  for (const int64_t d : rest_of_a) result.windows.push_back(a.windows[d]);
  for (const int64_t d : free_axes(contract, 1, b.windows.size()))
    result.windows.push_back(b.windows[d]);
  const bool is_batch = a.by_iteration && b.by_iteration;
  // The axis of iterations is the first of the operand's other axes.
  size_t before = batch.size();
  if (b.by_iteration) before += rest_of_a.size();
  if (is_batch) batch.insert(batch.begin(), {0, 0});
  result.value = builder_.contract(a.value, b.value, std::move(pairs), std::move(batch));
  if (is_batch || !result.by_iteration) return result;
  Ints order{static_cast<int64_t>(before)};
  for (size_t d = 0; d < builder_.shape(result.value).size(); ++d)
    if (d != before) order.push_back(static_cast<int64_t>(d));
  result.value = builder_.permute(result.value, std::move(order));
  return result;
}

std::optional<Lifted> Lifter::lift_part(const Node& node) {
  const auto whole = lift(node.inputs[0]);
  return whole ? lift_shrink(*node.as<Shrink>(), *whole) : std::nullopt;
}

std::optional<Lifted> Lifter::lift_shrink(const Shrink& shrink, Lifted lifted) {
  DimPairs limits;
  if (lifted.by_iteration) limits.push_back({0, trip()});
  // The axes along which iterations proceed, how far each iteration does, and the sizes of its
  // parts.
  Ints walked, strides, sizes;
  for (size_t d = 0; d < shrink.limits.size(); ++d) {
    const auto axis = static_cast<int64_t>(d);
    const auto& [low, high] = shrink.limits[d];
    limits.push_back({low, high});
    if (const auto& window = lifted.windows[d]) {
      if (low != Dim(0) || high != window->high - window->low) return std::nullopt;
      limits.back() = {0, size_of(lifted, axis)};
      continue;
    }
    if (!iterations_.decide(low) && !iterations_.decide(high)) continue;
    const auto hull = iterations_.hull(low, high);
    if (!hull) return std::nullopt;
    limits.back() = *hull;
    if (iterations_.decide(high - low)) {
      if (!trip().is_constant()) return std::nullopt;
      lifted.windows[d] = Window{low - hull->first, high - hull->first};
      continue;
    }
    const int64_t stride = *iterations_.growth(low);
    if (stride == 0 || !(high - low).is_constant()) return std::nullopt;
    walked.push_back(axis_of(lifted, axis));
    strides.push_back(stride);
    sizes.push_back((high - low).constant());
  }
  lifted.value = builder_.shrink(lifted.value, std::move(limits));
  if (walked.empty()) return lifted;
  if (!lifted.by_iteration && walked.size() == 1 && std::abs(strides[0]) == sizes[0]) {
    lifted.value = divide(lifted.value, walked[0], strides[0]);
  } else {
    const auto parts = overlap(lifted, walked, strides, sizes);
    if (!parts) return std::nullopt;
    lifted.value = *parts;
  }
  lifted.by_iteration = true;
  return lifted;
}

// If the parts are side by side, divides the axis in two: one of iterations and one of elements.
Value Lifter::divide(Value x, int64_t axis, int64_t stride) {
  Shape shape = builder_.shape(x);
  shape[axis] = Dim(std::abs(stride));
  shape.insert(shape.begin() + axis, trip());
  x = builder_.reshape(x, std::move(shape));
  if (stride < 0) x = builder_.flip(x, {axis});
  Ints order{axis};
  for (int64_t d = 0; d < static_cast<int64_t>(builder_.shape(x).size()); ++d)
    if (d != axis) order.push_back(d);
  return builder_.permute(x, std::move(order));
}

// If the parts overlap or have gaps, reads them through a view of the stored value.
std::optional<Value> Lifter::overlap(const Lifted& lifted, const Ints& walked, const Ints& strides,
                                     const Ints& sizes) {
  const Shape& shape = builder_.shape(lifted.value);
  if (!trip().is_constant() || !is_constant(shape)) return std::nullopt;
  rune::View view{constants_of(shape), contiguous_strides(shape), 0, std::nullopt};
  int64_t stride = lifted.by_iteration ? view.strides[0] : 0;
  for (size_t i = 0; i < walked.size(); ++i) {
    const int64_t axis = walked[i], step = strides[i] * view.strides[axis];
    stride += step;
    if (step < 0) view.offset -= step * (trip().constant() - 1);
    view.shape[axis] = sizes[i];
  }
  if (lifted.by_iteration) {
    view.strides[0] = stride;
  } else {
    view.shape.insert(view.shape.begin(), trip().constant());
    view.strides.insert(view.strides.begin(), stride);
  }
  return builder_.add(View{ShapeTracker{{std::move(view)}}}, {lifted.value});
}

}  // namespace rune::graph
