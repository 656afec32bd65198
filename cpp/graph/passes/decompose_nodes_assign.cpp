// Assign as values: the writes of a graph, in order, become selections by masks.
#include <algorithm>

#include "base/error.h"
#include "graph/passes/decompose_nodes_rules.h"
#include "graph/passes/rewrite.h"
#include "graph/text.h"

namespace rune::graph {

namespace {

bool leads_to_place(const Node& node) {
  return is_movement(node.kind()) || node.kind() == NodeKind::Assign;
}

DimPairs whole(const Shape& shape) {
  DimPairs box;
  for (const Dim& size : shape) box.push_back({0, size});
  return box;
}

// How much an operand of `shape` extends beyond the box on either side of each axis.
DimPairs around(const DimPairs& box, const Shape& shape) {
  DimPairs widths;
  for (size_t i = 0; i < shape.size(); ++i)
    widths.push_back({box[i].first, shape[i] - box[i].second});
  return widths;
}

// A Buffer's size is constant, and so are those of what it is seen through.
int64_t flatten(const Ints& index, const Shape& shape) {
  int64_t position = 0;
  for (size_t i = 0; i < shape.size(); ++i) position = position * shape[i].constant() + index[i];
  return position;
}

Ints unflatten(int64_t position, const Shape& shape) {
  Ints index(shape.size());
  for (size_t i = shape.size(); i-- > 0; position /= shape[i].constant())
    index[i] = position % shape[i].constant();
  return index;
}

// Moves an index of a node to its operand, of shape `from`; false if it is padding.
bool move_index(const Node& node, const Shape& from, Ints& index) {
  if (node.as<Reshape>()) {
    index = unflatten(flatten(index, node.shape()), from);
  } else if (const auto* permute = node.as<Permute>()) {
    const Ints outer = index;
    for (size_t i = 0; i < outer.size(); ++i) index[permute->axes[i]] = outer[i];
  } else if (const auto* flip = node.as<Flip>()) {
    for (const int64_t axis : flip->axes) index[axis] = from[axis].constant() - 1 - index[axis];
  } else if (const auto* shrink = node.as<Shrink>()) {
    for (size_t i = 0; i < index.size(); ++i) index[i] += shrink->limits[i].first.constant();
  } else if (const auto* pad = node.as<Pad>()) {
    for (size_t i = 0; i < index.size(); ++i) {
      index[i] -= pad->widths[i].first.constant();
      if (index[i] < 0 || index[i] >= from[i].constant()) return false;
    }
  } else if (const auto* view = node.as<Buffer_View>()) {
    index[0] += view->offset;
  }
  return true;
}

}  // namespace

Places::Places(const Graph& graph, Builder& builder, const std::vector<Value>& map)
    : graph_(graph), b_(builder), map_(map), alias_(graph.size()) {
  for (uint32_t id = 0; id < graph.size(); ++id) {
    if (graph.nodes[id].as<Buffer>()) places_[id] = {};
    if (graph.nodes[id].as<Assign>()) places_[path_to_place(id).back()] = {};
  }
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const Node& node = graph.nodes[id];
    if (!is_movement(node.kind())) continue;
    const uint32_t operand = node.inputs[0].id;
    // Movement of an Assign's result is a value like it, but may be undefined in parts.
    alias_[id] = alias_[operand] || places_.count(operand) || graph.nodes[operand].as<Assign>();
  }
}

std::vector<uint32_t> Places::path_to_place(uint32_t id) const {
  std::vector<uint32_t> path{id};
  while (leads_to_place(graph_.nodes[path.back()]))
    path.push_back(graph_.nodes[path.back()].inputs[0].id);
  return path;
}

void Places::undefined(uint32_t buffer) const {
  user_error(ErrorKind::Value, "buffer: cannot read `", print_node(graph_, {buffer}),
             "` before all its elements are assigned (its contents are undefined)");
}

Value Places::make_buffer(uint32_t id) {
  const Node& node = graph_.nodes[id];
  const int64_t count = max_elements(node.shape());
  const Value zeros = b_.full(Scalar::zero(node.dtype()), node.shape());
  places_[id] = {zeros, count > 0, std::vector<bool>(count)};
  return zeros;
}

// Applies the movement of a path, which ends at the place, to the place's content.
Value Places::along(const std::vector<uint32_t>& path, Value content) {
  for (size_t i = path.size() - 1; i-- > 0;) {
    const Node& node = graph_.nodes[path[i]];
    if (node.as<Assign>()) continue;
    content = b_.add(node.payload, {content}, {node.dtype(), node.shape(), std::nullopt});
  }
  return content;
}

Value Places::read(Value v) {
  std::vector<uint32_t> path{v.id};
  while (is_movement(graph_.nodes[path.back()].kind()))
    path.push_back(graph_.nodes[path.back()].inputs[0].id);
  const uint32_t source = path.back();
  if (const auto partial = undefined_.find(source); partial != undefined_.end())
    undefined(partial->second);
  const auto place = places_.find(source);
  if (place == places_.end()) return is_alias(v.id) ? along(path, map_[source]) : map_[v.id];
  if (place->second.partial) undefined(source);
  const Value content = place->second.content;
  return along(path, content.valid() ? content : map_[source]);
}

// All boxes of an Assign as one write to its target; nothing if they are empty.
std::optional<Places::Write> Places::collect(const Node& node, const std::vector<Value>& values) {
  const Shape& shape = node.shape();
  std::optional<Write> write;
  for (size_t i = 0; i < values.size(); ++i) {
    const DimPairs& box = node.as<Assign>()->boxes[i];
    if (box.empty() || box == whole(shape)) {
      write = Write{values[i], std::nullopt};
      continue;
    }
    if (max_elements(b_.shape(values[i])) == 0) continue;
    const DimPairs widths = around(box, shape);
    const Value inside = b_.full(Scalar::of(DType::Bool, true), b_.shape(values[i]));
    const Value value = b_.pad(values[i], widths), mask = b_.pad(inside, widths);
    if (!write) {
      write = Write{value, mask};
      continue;
    }
    write->value = b_.alu(AluOp::Where, {mask, value, write->value});
    if (write->mask) write->mask = b_.alu(AluOp::Or, {*write->mask, mask});
  }
  return write;
}

// Turns a write to the node `through` into one to its operand.
void Places::move_down(const Node& through, Write& write) {
  const Shape& from = graph_[through.inputs[0]].shape();
  const auto both = [&](auto&& move) {
    write.value = move(write.value);
    if (write.mask) write.mask = move(*write.mask);
  };
  const auto pad = [&](const DimPairs& widths) {
    const bool none = std::all_of(widths.begin(), widths.end(),
                                  [](const auto& w) { return w.first == 0 && w.second == 0; });
    if (none) return;
    if (!write.mask) write.mask = b_.full(Scalar::of(DType::Bool, true), b_.shape(write.value));
    both([&](Value x) { return b_.pad(x, widths); });
  };
  if (through.as<Reshape>()) {
    both([&](Value x) { return b_.reshape(x, from); });
  } else if (const auto* permute = through.as<Permute>()) {
    Ints inverse(permute->axes.size());
    for (size_t i = 0; i < inverse.size(); ++i) inverse[permute->axes[i]] = static_cast<int64_t>(i);
    both([&](Value x) { return b_.permute(x, inverse); });
  } else if (const auto* flip = through.as<Flip>()) {
    both([&](Value x) { return b_.flip(x, flip->axes); });
  } else if (const auto* shrink = through.as<Shrink>()) {
    pad(around(shrink->limits, from));
  } else if (const auto* padding = through.as<Pad>()) {
    DimPairs limits;  // what is written to padding is lost
    for (size_t i = 0; i < from.size(); ++i)
      limits.push_back({padding->widths[i].first, padding->widths[i].first + from[i]});
    both([&](Value x) { return b_.shrink(x, limits); });
  } else if (const auto* view = through.as<Buffer_View>()) {
    pad({{view->offset, from[0] - view->offset - view->size}});
  } else if (!through.as<Assign>() && !(through.as<Expand>() && through.shape() == from)) {
    user_error(ErrorKind::Unsupported, "assign: cannot write through ", name_of(through.kind()),
               " to ", shape_text(from), " (an element may be seen several times)");
  }
}

void Places::mark_assigned(Place& place, const Node& node, const std::vector<uint32_t>& path) {
  const Shape& target = node.shape();
  for (const DimPairs& given : node.as<Assign>()->boxes) {
    const DimPairs box = given.empty() ? whole(target) : given;
    Shape sizes;
    for (const auto& [low, high] : box) sizes.push_back(high - low);
    const int64_t count = max_elements(sizes);
    for (int64_t i = 0; i < count; ++i) {
      Ints index = unflatten(i, sizes);
      for (size_t d = 0; d < index.size(); ++d) index[d] += box[d].first.constant();
      bool inside = true;
      for (size_t k = 0; inside && k + 1 < path.size(); ++k)
        inside = move_index(graph_.nodes[path[k]], graph_.nodes[path[k + 1]].shape(), index);
      if (inside) place.assigned[flatten(index, graph_.nodes[path.back()].shape())] = true;
    }
  }
  place.partial =
      std::find(place.assigned.begin(), place.assigned.end(), false) != place.assigned.end();
}

Value Places::assign(uint32_t id) {
  const Node& node = graph_.nodes[id];
  std::vector<Value> values;
  for (size_t i = 1; i < node.inputs.size(); ++i) values.push_back(read(node.inputs[i]));
  const std::vector<uint32_t> path = path_to_place(node.inputs[0].id);
  Place& place = places_.at(path.back());
  if (const auto* define = graph_.nodes[path.back()].as<Define_Var>())
    user_error(ErrorKind::Value, "assign: cannot write to the variable ", define->var.name);
  if (!place.content.valid()) place.content = map_[path.back()];
  if (std::optional<Write> write = collect(node, values)) {
    for (size_t i = 0; i + 1 < path.size(); ++i) move_down(graph_.nodes[path[i]], *write);
    place.content = write->mask ? b_.alu(AluOp::Where, {*write->mask, write->value, place.content})
                                : write->value;
    if (!write->mask) place.partial = false;
    if (place.partial) mark_assigned(place, node, path);
  }
  if (place.partial) undefined_[id] = path.back();
  return along(path, place.content);
}

}  // namespace rune::graph
