// Replaces Assign by values: the writes of a graph, in order, become selections by masks.
#include <map>
#include <optional>

#include "base/error.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"
#include "graph/text.h"

namespace rune::graph {

namespace {

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

// The row-major position of an index. Sizes of a Buffer and of movements of it are constant.
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

// Turns an index of a movement into the index of its operand, of shape `from`. Returns false if the
// element is padding.
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

// A write of `value` where `mask` is true, or everywhere if there is no mask.
struct MaskedWrite {
  Value value;
  std::optional<Value> mask;
};

// All boxes of an Assign as one write to its target. Nothing if they are empty.
std::optional<MaskedWrite> collect(Builder& b, const Node& assign,
                                   const std::vector<Value>& values) {
  const Shape& shape = assign.shape();
  std::optional<MaskedWrite> write;
  for (size_t i = 0; i < values.size(); ++i) {
    const DimPairs& box = assign.as<Assign>()->boxes[i];
    if (box.empty() || box == whole(shape)) {
      write = MaskedWrite{values[i], std::nullopt};
      continue;
    }
    if (max_elements(b.shape(values[i])) == 0) continue;
    const DimPairs widths = around(box, shape);
    const Value inside = b.full(Scalar::of(DType::Bool, true), b.shape(values[i]));
    const Value value = b.pad(values[i], widths), mask = b.pad(inside, widths);
    if (!write) {
      write = MaskedWrite{value, mask};
      continue;
    }
    write->value = b.alu(AluOp::Where, {mask, value, write->value});
    if (write->mask) write->mask = b.alu(AluOp::Or, {*write->mask, mask});
  }
  return write;
}

// Turns a write to the node `through` into a write to its operand, of shape `from`.
void move_down(Builder& b, const Node& through, const Shape& from, MaskedWrite& write) {
  const auto both = [&](auto&& move) {
    write.value = move(write.value);
    if (write.mask) write.mask = move(*write.mask);
  };
  const auto pad = [&](const DimPairs& widths) {
    if (widths == DimPairs(widths.size())) return;
    if (!write.mask) write.mask = b.full(Scalar::of(DType::Bool, true), b.shape(write.value));
    both([&](Value x) { return b.pad(x, widths); });
  };
  if (through.as<Reshape>()) {
    both([&](Value x) { return b.reshape(x, from); });
  } else if (const auto* permute = through.as<Permute>()) {
    Ints inverse(permute->axes.size());
    for (size_t i = 0; i < inverse.size(); ++i) inverse[permute->axes[i]] = static_cast<int64_t>(i);
    both([&](Value x) { return b.permute(x, inverse); });
  } else if (const auto* flip = through.as<Flip>()) {
    both([&](Value x) { return b.flip(x, flip->axes); });
  } else if (const auto* shrink = through.as<Shrink>()) {
    pad(around(shrink->limits, from));
  } else if (const auto* padding = through.as<Pad>()) {
    DimPairs limits;  // cut the padding off, because writes to it have no effect
    for (size_t i = 0; i < from.size(); ++i)
      limits.push_back({padding->widths[i].first, padding->widths[i].first + from[i]});
    both([&](Value x) { return b.shrink(x, limits); });
  } else if (const auto* view = through.as<Buffer_View>()) {
    pad({{view->offset, from[0] - Dim(view->offset + view->size)}});
  } else if (!through.as<Assign>() && !(through.as<Expand>() && through.shape() == from)) {
    user_error(ErrorKind::Unsupported, "assign: cannot write through ", name_of(through.kind()),
               " to ", shape_text(from), " (an element may be seen several times)");
  }
}

class Functionalizer {
 public:
  explicit Functionalizer(const Graph& graph) : graph_(graph), alias_(graph.size()) {
    for (uint32_t id = 0; id < graph.size(); ++id) {
      if (graph.nodes[id].as<Buffer>()) places_[id] = {};
      if (graph.nodes[id].as<Assign>()) places_[path_to_place(id).back()] = {};
    }
    for (uint32_t id = 0; id < graph.size(); ++id) {
      const Node& node = graph.nodes[id];
      if (!is_movement(node.kind())) continue;
      const uint32_t operand = node.inputs[0].id;
      alias_[id] = alias_[operand] || places_.count(operand);
    }
  }

  Graph run() {
    return rewrite(
        graph_,
        [&](Builder& b, uint32_t id, const Node& node, std::vector<Value> inputs) {
          if (alias_[id]) return Value{};  // it is built when it is read
          if (node.as<Buffer>()) return make_buffer(b, id);
          if (node.as<Assign>()) return assign(b, id, inputs);
          if (is_movement(node.kind()) && undefined_.count(node.inputs[0].id)) {
            undefined_[id] = undefined_.at(node.inputs[0].id);
          } else {
            for (size_t i = 0; i < inputs.size(); ++i)
              inputs[i] = read(b, node.inputs[i], inputs[i]);
          }
          const Value v = b.copy(node, std::move(inputs));
          if (const auto place = places_.find(id); place != places_.end())
            place->second.content = v;
          return v;
        },
        [&](Builder& b, Value old, Value v) { return read(b, old, v); });
  }

 private:
  // A node whose storage is written, directly or through movement.
  struct Place {
    Value content;               // its value at this point of the graph's order
    bool partial = false;        // a Buffer that still has undefined elements
    std::vector<bool> assigned;  // for a partial one: by element, whether it is defined
  };

  // The nodes from `id` down to its place, which comes last. Between them are movement and Assigns.
  std::vector<uint32_t> path_to_place(uint32_t id) const {
    std::vector<uint32_t> path{id};
    while (true) {
      const Node& node = graph_.nodes[path.back()];
      if (!is_movement(node.kind()) && !node.as<Assign>()) return path;
      path.push_back(node.inputs[0].id);
    }
  }

  // The present value of a node that has become `v`.
  Value read(Builder& b, Value old, Value v) const {
    if (const auto buffer = undefined_.find(old.id); buffer != undefined_.end())
      undefined(buffer->second);
    if (!alias_[old.id] && !places_.count(old.id)) return v;
    const std::vector<uint32_t> path = path_to_place(old.id);
    const Place& place = places_.at(path.back());
    if (place.partial) undefined(path.back());
    return along(b, path, place.content);
  }

  [[noreturn]] void undefined(uint32_t buffer) const {
    user_error(ErrorKind::Value, "buffer: cannot read `", print_node(graph_, {buffer}),
               "` before all its elements are assigned (its contents are undefined)");
  }

  // Applies the movement of a path, which ends at a place, to the place's content.
  Value along(Builder& b, const std::vector<uint32_t>& path, Value content) const {
    for (size_t i = path.size() - 1; i-- > 0;)
      if (const Node& node = graph_.nodes[path[i]]; !node.as<Assign>())
        content = b.copy(node, {content});
    return content;
  }

  Value make_buffer(Builder& b, uint32_t id) {
    const Node& node = graph_.nodes[id];
    const int64_t count = max_elements(node.shape());
    const Value zeros = b.full(Scalar::zero(node.dtype()), node.shape());
    places_[id] = {zeros, count > 0, std::vector<bool>(count)};
    return zeros;
  }

  Value assign(Builder& b, uint32_t id, const std::vector<Value>& inputs) {
    const Node& node = graph_.nodes[id];
    std::vector<Value> values;
    for (size_t i = 1; i < inputs.size(); ++i) values.push_back(read(b, node.inputs[i], inputs[i]));
    const std::vector<uint32_t> path = path_to_place(node.inputs[0].id);
    if (const auto* define = graph_.nodes[path.back()].as<Define_Var>())
      user_error(ErrorKind::Value, "assign: cannot write to the variable ", define->var.name);
    Place& place = places_.at(path.back());
    if (std::optional<MaskedWrite> write = collect(b, node, values)) {
      for (size_t i = 0; i + 1 < path.size(); ++i)
        move_down(b, graph_.nodes[path[i]], graph_.nodes[path[i + 1]].shape(), *write);
      place.content = write->mask ? b.alu(AluOp::Where, {*write->mask, write->value, place.content})
                                  : write->value;
      if (!write->mask) place.partial = false;
      if (place.partial) mark_assigned(place, node, path);
    }
    if (place.partial) undefined_[id] = path.back();
    return along(b, path, place.content);
  }

  void mark_assigned(Place& place, const Node& node, const std::vector<uint32_t>& path) const {
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
    place.partial = contains(place.assigned, false);
  }

  const Graph& graph_;
  std::vector<bool> alias_;  // by node: whether it is movement of a place
  std::map<uint32_t, Place> places_;
  // By result of an Assign, or movement of one, that has undefined elements: its Buffer.
  std::map<uint32_t, uint32_t> undefined_;
};

}  // namespace

Graph functionalize(const Graph& graph, const std::string& device) {
  Graph live = eliminate_dead_code(graph);
  check_devices(live, device);
  const bool writes =
      any_node(live, [](const Node& node) { return node.as<Assign>() || node.as<Buffer>(); });
  return writes ? Functionalizer(live).run() : live;
}

}  // namespace rune::graph
