#include "graph/passes/row_axes.h"

#include <algorithm>
#include <set>

#include "graph/attribute_dims.h"
#include "graph/infer.h"
#include "graph/passes/rewrite.h"

namespace rune::graph {

RowAxes::RowAxes(const Graph& graph, const LoopTree& tree, const LoopTree::Loop& loop)
    : graph_(graph), body_(tree.body_of(loop)) {
  for (const uint32_t id : body_) {
    const Node& node = graph.nodes[id];
    values_[id] = add_axes(node.shape());
  }
  for (const uint32_t id : body_) {
    const Node& node = graph.nodes[id];
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (!is_member(node.inputs[i])) others_[{id, i}] = add_axes(graph[node.inputs[i]].shape());
  }
  for (const uint32_t id : body_) {
    connect(id);
    if (graph.nodes[id].as<End_Loop>()) add_loop(tree.ended_by({id}));
  }
  add_loop(loop);
  collect_rows();
}

size_t RowAxes::add_axes(const Shape& shape) {
  const size_t first = axes_.size();
  for (const Dim& size : shape) axes_.push_back({axes_.size(), 0, size, false});
  return first;
}

RowAxes::Place RowAxes::find(size_t axis) const {
  int64_t shift = 0;
  for (; axes_[axis].parent != axis; axis = axes_[axis].parent) shift += axes_[axis].shift;
  return {axis, shift};
}

void RowAxes::join(size_t a, size_t b, int64_t distance) {
  const Place of_a = find(a), of_b = find(b);
  const int64_t shift = of_b.shift + distance - of_a.shift;
  if (of_a.group == of_b.group) {
    if (shift != 0) mix(a);
    return;
  }
  axes_[of_a.group].parent = of_b.group;
  axes_[of_a.group].shift = shift;
}

void RowAxes::mix_all(size_t first, size_t rank) {
  for (size_t d = 0; d < rank; ++d) mix(first + d);
}

size_t RowAxes::operand(uint32_t user, size_t input) const {
  const auto known = values_.find(graph_.nodes[user].inputs[input].id);
  return known != values_.end() ? known->second : others_.at({user, input});
}

RowAxes::Place RowAxes::of_operand(uint32_t user, size_t input, size_t axis) const {
  return find(operand(user, input) + axis);
}

std::optional<size_t> RowAxes::axis_in(Value v, size_t group) const {
  for (size_t d = 0; d < graph_[v].shape().size(); ++d)
    if (of(v, d).group == group) return d;
  return std::nullopt;
}

// A carried value has the same axes at the end of an iteration as at the start.
void RowAxes::add_loop(const LoopTree::Loop& loop) {
  const Node& end = graph_[loop.end];
  const size_t count = num_carried(end);
  for (const uint32_t id : body_) {
    const Node& node = graph_.nodes[id];
    const auto* carry = node.as<Carry>();
    if (!carry || node.inputs[1] != end.inputs[0]) continue;
    const Value last = end.inputs[1 + carry->index];
    for (size_t d = 0; d < node.shape().size(); ++d) {
      // From the second iteration on, it is a value from outside of the iteration.
      if (is_member(last))
        join(values_.at(id) + d, values_.at(last.id) + d);
      else
        mix(values_.at(id) + d);
    }
  }
  if (!is_member(loop.end)) return;
  for (size_t k = 0; k < count; ++k)
    for (size_t d = 0; d < graph_[end.inputs[1 + k]].shape().size(); ++d)
      join(operand(loop.end.id, 1 + k) + d, operand(loop.end.id, 1 + count + k) + d);
}

void RowAxes::join_all(uint32_t id, size_t input) {
  const size_t first = operand(id, input);
  for (size_t d = 0; d < graph_.nodes[id].shape().size(); ++d) join(first + d, values_.at(id) + d);
}

void RowAxes::connect(uint32_t id) {
  const Node& node = graph_.nodes[id];
  if (node.meta.device) is_known_ = false;
  switch (node.kind()) {
    case NodeKind::Unary:
    case NodeKind::Binop:
    case NodeKind::Ternary:
    case NodeKind::Cast:
    case NodeKind::Bitcast:
    case NodeKind::Contiguous:
      for (size_t i = 0; i < node.inputs.size(); ++i) join_all(id, i);
      return;
    case NodeKind::Carry: return join_all(id, 0);
    case NodeKind::Loop_Result: {
      // For this use, a value from outside may have other axes than for the loop's end.
      const auto last = 1 + static_cast<size_t>(node.as<Loop_Result>()->index);
      const size_t final = operand(node.inputs[0].id, last);
      for (size_t d = 0; d < node.shape().size(); ++d) join(final + d, values_.at(id) + d);
      return join_all(id, 1);
    }
    case NodeKind::Loop_Counter:
    case NodeKind::Loop_Size:
    case NodeKind::End_Loop: return;
    case NodeKind::Reshape: return connect_reshape(id);
    case NodeKind::Shrink:
    case NodeKind::Update: return connect_part(id);
    case NodeKind::Contract: return connect_contract(id);
    case NodeKind::Gather:
    case NodeKind::Scatter: return connect_indexed(id);
    default: return connect_moved(id);
  }
}

// Connects axes through movement that keeps some axes.
void RowAxes::connect_moved(uint32_t id) {
  const Node& node = graph_.nodes[id];
  const size_t rank = node.shape().size(), result = values_.at(id);
  if (const auto* permute = node.as<Permute>()) {
    for (size_t d = 0; d < rank; ++d) join(operand(id, 0) + permute->axes[d], result + d);
    return;
  }
  if (const auto* expand = node.as<Expand>()) {
    const Shape& from = graph_[node.inputs[0]].shape();
    for (size_t d = 0; d < rank; ++d)
      if (from[d] == expand->shape[d]) join(operand(id, 0) + d, result + d);
    return;
  }
  if (const auto* pad = node.as<Pad>()) {
    for (size_t d = 0; d < rank; ++d) {
      const Dim& before = pad->widths[d].first;
      if (before.is_constant()) {
        join(operand(id, 0) + d, result + d, before.constant());
      } else {
        mix(operand(id, 0) + d), mix(result + d);
      }
    }
    return;
  }
  Ints mixed;
  if (node.as<View>()) {
    mix_all(operand(id, 0), graph_[node.inputs[0]].shape().size());
    return mix_all(result, rank);
  }
  if (const auto* flip = node.as<Flip>())
    mixed = flip->axes;
  else if (const auto* reduce = node.as<Reduce_Axis>())
    mixed = reduce->axes;
  else if (const auto* scan = node.as<Scan>())
    mixed = {scan->axis};
  else if (const auto* cat = node.as<Cat>())
    mixed = {cat->axis};
  else if (node.as<Threefry>())
    mixed = {static_cast<int64_t>(rank) - 1};
  else
    is_known_ = false;
  if (!is_known_) return;
  for (size_t i = 0; i < node.inputs.size(); ++i)
    for (size_t d = 0; d < rank; ++d) {
      if (contains(mixed, static_cast<int64_t>(d)))
        mix(operand(id, i) + d), mix(result + d);
      else
        join(operand(id, i) + d, result + d);
    }
}

// Connects axes through a reshape. Axes of size 1 may be added or removed. An axis that keeps its
// size is the same axis.
void RowAxes::connect_reshape(uint32_t id) {
  const Shape &to = graph_.nodes[id].shape(), &from = graph_[graph_.nodes[id].inputs[0]].shape();
  const size_t operands = operand(id, 0), results = values_.at(id);
  if (!is_constant(to) || !is_constant(from)) {
    mix_all(operands, from.size());
    mix_all(results, to.size());
    return;
  }
  size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    if (i < from.size() && from[i] == Dim(1)) {
      ++i;
      continue;
    }
    if (j < to.size() && to[j] == Dim(1)) {
      ++j;
      continue;
    }
    if (i == from.size() || j == to.size()) break;
    if (from[i] == to[j]) {
      join(operands + i++, results + j++);
      continue;
    }
    // Axes that are merged to one, or into which one is split.
    int64_t of_from = from[i].constant(), of_to = to[j].constant();
    mix(operands + i++), mix(results + j++);
    while (of_from != of_to) {
      if (of_from < of_to && i < from.size()) {
        of_from *= from[i].constant();
        mix(operands + i++);
      } else if (of_to < of_from && j < to.size()) {
        of_to *= to[j].constant();
        mix(results + j++);
      } else {
        break;  // the array has no elements
      }
    }
  }
  for (; i < from.size(); ++i) mix(operands + i);
  for (; j < to.size(); ++j) mix(results + j);
}

// Connects axes through a Shrink or an Update, which read or write a part of the first operand.
void RowAxes::connect_part(uint32_t id) {
  const Node& node = graph_.nodes[id];
  const auto* shrink = node.as<Shrink>();
  const size_t whole = operand(id, 0), part = shrink ? values_.at(id) : operand(id, 1);
  for (size_t d = 0; d < node.shape().size(); ++d) {
    if (!shrink) join(whole + d, values_.at(id) + d);
    // If the loop does not change a value, any iteration may read any row of it.
    if (shrink && !is_member(node.inputs[0])) continue;
    const Dim& low = shrink ? shrink->limits[d].first : node.as<Update>()->offsets[d];
    if (low.is_constant()) {
      join(part + d, whole + d, low.constant());
    } else {
      mix(part + d), mix(whole + d);
    }
  }
}

void RowAxes::connect_contract(uint32_t id) {
  const Node& node = graph_.nodes[id];
  const auto& contract = *node.as<Contract>();
  const size_t a = operand(id, 0), b = operand(id, 1), result = values_.at(id);
  for (const auto& [of_a, of_b] : contract.contract) mix(a + of_a), mix(b + of_b);
  size_t d = 0;
  for (const auto& [of_a, of_b] : contract.batch) {
    join(a + of_a, result + d);
    join(b + of_b, result + d++);
  }
  for (const size_t i : {size_t{0}, size_t{1}})
    for (const int64_t axis : free_axes(contract, i, graph_[node.inputs[i]].shape().size()))
      join((i == 0 ? a : b) + axis, result + d++);
}

// A Gather reads, and a Scatter writes, any element along its axis.
void RowAxes::connect_indexed(uint32_t id) {
  const Node& node = graph_.nodes[id];
  const auto* scatter = node.as<Scatter>();
  const size_t array = operand(id, 0), indices = operand(id, 1);
  const size_t axis = static_cast<size_t>(scatter ? scatter->axis : node.as<Gather>()->axis);
  const size_t batch = scatter ? static_cast<size_t>(scatter->batch_rank()) : 0;
  const size_t rank = graph_[node.inputs[0]].shape().size();
  const size_t walked = graph_[node.inputs[1]].shape().size() - batch;
  // The updates, or the gathered elements: they have the axes of the indices in place of `axis`.
  const size_t parts = scatter ? operand(id, 2) : values_.at(id);
  for (size_t d = 0; d < rank; ++d) {
    if (scatter) join(array + d, values_.at(id) + d);
    if (d == axis)
      mix(array + d);
    else
      join(array + d, parts + (d < axis ? d : d - 1 + walked));
  }
  for (size_t d = 0; d < batch; ++d) join(indices + d, array + d);
  for (size_t d = 0; d < walked; ++d) {
    join(indices + batch + d, parts + axis + d);
    if (scatter) mix(indices + batch + d);
  }
}

void RowAxes::collect_rows() {
  std::set<size_t> mixed;
  // If two axes of a value are in the same group, each element is in two rows. An example is a
  // value computed from both x and x.T.
  const auto mix_twice = [&](size_t first, size_t rank) {
    std::set<size_t> groups;
    for (size_t d = 0; d < rank; ++d) {
      const size_t group = find(first + d).group;
      if (!groups.insert(group).second) mixed.insert(group);
    }
  };
  for (const auto& [id, first] : values_) mix_twice(first, graph_.nodes[id].shape().size());
  for (const auto& [use, first] : others_) {
    const Value v = graph_.nodes[use.first].inputs[use.second];
    mix_twice(first, graph_[v].shape().size());
  }
  for (size_t i = 0; i < axes_.size(); ++i) {
    const Place place = find(i);
    if (axes_[i].is_mixed || !axes_[i].size.is_constant()) {
      mixed.insert(place.group);
      continue;
    }
    const int64_t low = place.shift, high = place.shift + axes_[i].size.constant();
    const auto [known, is_new] = rows_.try_emplace(place.group, low, high);
    if (is_new) continue;
    known->second = {std::max(known->second.first, low), std::min(known->second.second, high)};
  }
  for (const size_t group : mixed) rows_.erase(group);
}

std::optional<std::pair<int64_t, int64_t>> RowAxes::rows_of(size_t group) const {
  const auto known = rows_.find(group);
  return known == rows_.end() ? std::nullopt : std::optional(known->second);
}

std::vector<size_t> RowAxes::groups() const {
  std::vector<size_t> result;
  for (const auto& [group, rows] : rows_) result.push_back(group);
  return result;
}

}  // namespace rune::graph
