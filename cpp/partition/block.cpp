#include "partition/block.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "partition/needs.h"
#include "partition/reshaping.h"

namespace rune::partition {

using graph::Builder;
using graph::Graph;
using graph::Node;
using graph::NodeKind;
using graph::Value;

namespace {

std::vector<Need> needs_of_root(const Graph& graph, const Root& root) {
  if (!root.is_partial) return {};
  if (graph[root.value].as<graph::Contract>()) return needs_of_sum(graph, root.value, root.box);
  return {{0, root.box}};
}

// The limits of a box in coordinates of another one, which contains it.
graph::DimPairs limits_in(const Box& outer, const Box& box) {
  graph::DimPairs limits;
  for (size_t i = 0; i < box.size(); ++i)
    limits.emplace_back(box[i].first - outer[i].first, box[i].second - outer[i].first);
  return limits;
}

Value zeros(Builder& b, DType dtype, const Box& box) {
  return b.full(Scalar::zero(dtype), to_shape(sizes_of(box)));
}

// Adds to the key how a node's program depends on the position of its box. (The positions of the
// boxes that it needs are added elsewhere.)
void add_place(std::vector<int64_t>& key, const Graph& graph, const Node& node, const Box& box) {
  const auto add_lows = [&] {
    for (const auto& range : box) key.push_back(range.first);
  };
  switch (node.kind()) {
    case NodeKind::Scan: key.push_back(box[node.as<graph::Scan>()->axis].first); break;
    case NodeKind::Vconst:
    case NodeKind::Iota:
    case NodeKind::View:
    case NodeKind::Scatter:
    case NodeKind::Loop_Nest: add_lows(); break;
    case NodeKind::Pad: {
      const auto& widths = node.as<graph::Pad>()->widths;
      for (size_t i = 0; i < box.size(); ++i)
        key.push_back(std::max<int64_t>(0, widths[i].first.constant() - box[i].first));
      break;
    }
    case NodeKind::Reshape: {
      const Reshaping reshaping = reshaping_of(constants_of(graph[node.inputs[0]].shape()),
                                               constants_of(node.shape()), box);
      key.insert(key.end(), reshaping.offsets.begin(), reshaping.offsets.end());
      for (size_t i = 0; i < box.size(); ++i) {
        key.push_back(box[i].first - reshaping.wide[i].first);
        key.push_back(reshaping.wide[i].second - reshaping.wide[i].first);
      }
      break;
    }
    default: break;
  }
}

}  // namespace

Block::Block(const Graph& graph, const std::vector<bool>& given, std::vector<Root> roots)
    : graph_(graph), given_(given), roots_(std::move(roots)), boxes_(graph.size()) {
  uint32_t last = 0;
  for (const Root& root : roots_) {
    last = std::max(last, root.value.id);
    if (!root.is_partial) add_box(boxes_[root.value.id], root.box);
    for (Need& need : needs_of_root(graph, root))
      add_box(boxes_[graph[root.value].inputs[need.operand].id], std::move(need.box));
  }
  for (uint32_t id = last + 1; id-- > 0;) {
    if (given[id]) continue;
    for (const Box& box : boxes_[id])
      for (Need& need : needs_of(graph, {id}, box))
        add_box(boxes_[graph.nodes[id].inputs[need.operand].id], std::move(need.box));
  }
}

std::vector<Block::Operand> Block::operands() const {
  std::vector<Operand> result;
  for (uint32_t id = 0; id < boxes_.size(); ++id)
    if (given_[id])
      for (const Box& box : boxes_[id]) result.push_back({{id}, box});
  return result;
}

size_t Block::box_with(Value v, const Box& box) const {
  const std::vector<Box>& boxes = boxes_[v.id];
  const auto found = std::find_if(boxes.begin(), boxes.end(),
                                  [&](const Box& known) { return contains(known, box); });
  RUNE_CHECK(found != boxes.end(), "a needed box of %", v.id, " is not computed");
  return static_cast<size_t>(found - boxes.begin());
}

std::vector<int64_t> Block::key() const {
  std::vector<int64_t> key;
  const auto add_need = [&](const Node& node, const Need& need) {
    const Value operand = node.inputs[need.operand];
    key.push_back(static_cast<int64_t>(need.operand));
    for (const auto& [low, high] : need.box) key.push_back(high - low);
    if (is_empty(need.box)) return;
    const size_t number = box_with(operand, need.box);
    key.push_back(static_cast<int64_t>(number));
    for (size_t i = 0; i < need.box.size(); ++i)
      key.push_back(need.box[i].first - boxes_[operand.id][number][i].first);
  };
  for (uint32_t id = 0; id < boxes_.size(); ++id) {
    for (const Box& box : boxes_[id]) {
      key.push_back(id);
      for (const auto& [low, high] : box) key.push_back(high - low);
      if (given_[id]) continue;
      const Node& node = graph_.nodes[id];
      for (const Need& need : needs_of(graph_, {id}, box)) add_need(node, need);
      add_place(key, graph_, node, box);
    }
  }
  for (const Root& root : roots_) {
    for (const auto& [low, high] : root.box) key.push_back(high - low);
    if (root.is_partial) {
      for (const Need& need : needs_of_root(graph_, root)) add_need(graph_[root.value], need);
    } else if (!is_empty(root.box)) {
      key.push_back(static_cast<int64_t>(box_with(root.value, root.box)));
    }
  }
  return key;
}

Graph Block::program() {
  Builder b;
  emitted_.assign(graph_.size(), {});
  for (uint32_t id = 0; id < boxes_.size(); ++id) {
    b.set_location(graph_.nodes[id].location);
    for (const Box& box : boxes_[id])
      emitted_[id].push_back(given_[id]
                                 ? b.placeholder(graph_.nodes[id].dtype(), to_shape(sizes_of(box)))
                                 : emit(b, {id}, box));
  }
  std::vector<Value> outputs;
  for (const Root& root : roots_) {
    b.set_location(graph_[root.value].location);
    outputs.push_back(emit_root(b, root));
  }
  b.set_outputs(std::move(outputs));
  return b.take();
}

// The elements of a box. It may be part of a box that has been emitted.
Value Block::fetch(Builder& b, Value v, const Box& box) {
  if (is_empty(box)) return zeros(b, graph_[v].dtype(), box);
  const size_t number = box_with(v, box);
  return b.shrink(emitted_[v.id][number], limits_in(boxes_[v.id][number], box));
}

// Emits the node for `box`, on the boxes of its operands that `box` needs.
Value Block::copy(Builder& b, Value v, const Box& box) {
  const Node& node = graph_[v];
  std::vector<Value> inputs;
  for (const Need& need : needs_of(graph_, v, box))
    inputs.push_back(fetch(b, node.inputs[need.operand], need.box));
  return b.copy(node, std::move(inputs));
}

Value Block::emit(Builder& b, Value v, const Box& box) {
  const Node& node = graph_[v];
  const Box all = whole(constants_of(node.shape()));
  switch (cut_of(node)) {
    case Cut::Given: {
      if (const auto* iota = node.as<graph::Iota>()) {
        const Shape shape = to_shape(sizes_of(box));
        const Value first = b.full(Scalar::of(iota->target, box[0].first), shape);
        return b.alu(AluOp::Add, {b.add(graph::Iota{iota->target, shape}, {}), first});
      }
      const auto* values = node.as<graph::Vconst>();
      if (!values) return b.copy(node, {});
      const auto first = values->values.begin();
      return b.add(graph::Vconst{{first + box[0].first, first + box[0].second}}, {});
    }
    case Cut::Moved: return emit_moved(b, v, box);
    case Cut::Joined: {
      std::vector<Value> parts;
      for (const Need& need : needs_of(graph_, v, box))
        parts.push_back(fetch(b, node.inputs[need.operand], need.box));
      return b.cat(std::move(parts), node.as<graph::Cat>()->axis);
    }
    case Cut::Elementwise:
    case Cut::Selected:
    case Cut::Reduced: return copy(b, v, box);
    case Cut::Prefix: {
      const int64_t axis = node.as<graph::Scan>()->axis;
      return b.slice(copy(b, v, box), axis, box[axis].first, box[axis].second);
    }
    case Cut::Whole: return b.shrink(copy(b, v, all), limits_in(all, box));
    case Cut::Called:
    case Cut::Never: break;
  }
  RUNE_UNREACHABLE(name_of_node(node), " is part of no block");
}

Value Block::emit_moved(Builder& b, Value v, const Box& box) {
  const Node& node = graph_[v];
  const std::vector<Need> needs = needs_of(graph_, v, box);
  if (needs.empty()) return zeros(b, node.dtype(), box);  // in the border of a Pad
  const Value operand = fetch(b, node.inputs[0], needs[0].box);
  switch (node.kind()) {
    case NodeKind::Reshape: {
      const Ints from = constants_of(graph_[node.inputs[0]].shape());
      const Ints to = constants_of(node.shape());
      const Reshaping reshaping = reshaping_of(from, to, box);
      const std::vector<AxisGroup> groups = axis_groups(from, to);
      Ints runs;
      graph::DimPairs limits;
      for (size_t g = 0; g < groups.size(); ++g) {
        int64_t run = 1, wanted = 1;
        for (size_t d = groups[g].from; d < groups[g].from_end; ++d)
          run *= needs[0].box[d].second - needs[0].box[d].first;
        for (size_t d = groups[g].to; d < groups[g].to_end; ++d)
          wanted *= reshaping.wide[d].second - reshaping.wide[d].first;
        runs.push_back(run);
        limits.emplace_back(reshaping.offsets[g], reshaping.offsets[g] + wanted);
      }
      const Shape wide = to_shape(sizes_of(reshaping.wide));
      const bool is_whole = num_elements(runs) == num_elements(sizes_of(reshaping.wide));
      const Value run = is_whole ? operand : b.shrink(b.reshape(operand, to_shape(runs)), limits);
      return b.shrink(b.reshape(run, wide), limits_in(reshaping.wide, box));
    }
    case NodeKind::Expand: return b.expand(operand, to_shape(sizes_of(box)));
    case NodeKind::Shrink: return operand;
    case NodeKind::Pad: {
      graph::DimPairs widths;
      for (size_t i = 0; i < box.size(); ++i) {
        const int64_t before = node.as<graph::Pad>()->widths[i].first.constant();
        const int64_t first = needs[0].box[i].first + before;
        const int64_t end = needs[0].box[i].second + before;
        widths.emplace_back(first - box[i].first, box[i].second - end);
      }
      return b.pad(operand, std::move(widths));
    }
    default: return b.add(node.payload, {operand});  // Permute, Flip
  }
}

Value Block::emit_root(Builder& b, const Root& root) {
  const Node& node = graph_[root.value];
  if (!root.is_partial) return fetch(b, root.value, root.box);
  std::vector<Value> inputs;
  for (const Need& need : needs_of_root(graph_, root))
    inputs.push_back(fetch(b, node.inputs[need.operand], need.box));
  return b.copy(node, std::move(inputs));
}

}  // namespace rune::partition
