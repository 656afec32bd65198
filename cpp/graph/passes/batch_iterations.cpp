// Iterations that do not depend on one another become elements of a further axis.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "graph/attribute_dims.h"
#include "graph/passes/iterations.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

namespace rune::graph {

namespace {

// On cores, iterations with fewer than so many fill no vector.
constexpr int64_t kLeastIterations = 8;
// Of a value that may have to be stored for all iterations at once. Larger ones must have one user,
// with which they share a kernel.
constexpr int64_t kMostElements = 1 << 27;

// What a value of a loop's body is for all iterations together.
struct Lifted {
  Value value;
  bool by_iteration = false;  // whether it has a further first axis, along which iterations lie
};

class Batcher {
 public:
  Batcher(const Graph& graph, const LoopTree& tree, const LoopTree::Loop& loop, Builder& builder,
          const std::vector<Value>& map)
      : graph_(graph),
        end_(graph[loop.end]),
        iterations_(Iterations::of(graph, tree, loop.end)),
        members_(loop.members.begin(), loop.members.end()),
        builder_(builder),
        map_(map) {}

  // Whether iterations may become an axis, as far as what they write tells.
  bool may_run(const Capabilities& caps) {
    if (!iterations_ || trip().bound() < 2 || !find_writes()) return false;
    return caps.model == ExecutionModel::Grid || fills_vectors();
  }

  // What the loop carries when it has ended, by index; nothing if the loop stays. `may_run` comes
  // first.
  std::optional<std::vector<Value>> run() {
    try {
      return results();
    } catch (const UserError&) {
      return std::nullopt;  // symbolic sizes that movement does not take
    }
  }

 private:
  std::optional<std::vector<Value>> results() {
    std::vector<Value> results;
    for (size_t k = 0; k < writes_.size(); ++k) {
      const std::optional<Value> result = array_after(writes_[k].updates.size(), k);
      if (!result) return std::nullopt;
      results.push_back(*result);
    }
    return results;
  }

  // Carried array k after so many of its updates in all iterations.
  std::optional<Value> array_after(size_t count, size_t k) {
    if (count == 0) return initial(k);
    const Value update = writes_[k].updates[count - 1];
    const auto known = updated_.find(update.id);
    if (known != updated_.end()) return known->second;
    const auto before = array_after(count - 1, k);
    const auto part = lift(graph_[update].inputs[1]);
    if (!before || !part) return std::nullopt;
    builder_.set_location(graph_[update].location);
    return updated_[update.id] =
               write_all(writes_[k], *graph_[update].as<Update>(), *part, *before);
  }

  // Whether iterations side by side are lanes of vectors, which they are not one by one: neighbours
  // in memory are what several iterations write, and each computes sums for itself alone. Other
  // iterations find their data in a core's first cache.
  bool fills_vectors() const {
    if (trip().bound() < kLeastIterations) return false;
    for (size_t k = 0; k < writes_.size(); ++k) {
      const auto last = std::ssize(graph_[end_.inputs[1 + k]].shape()) - 1;
      const bool is_read_only = writes_[k].updates.empty();
      if (!is_read_only && (writes_[k].axis != last || writes_[k].size != 1)) return false;
    }
    return std::none_of(members_.begin(), members_.end(), [&](uint32_t id) {
      const Node& node = graph_.nodes[id];
      const bool sums = node.as<Reduce_Axis>() || node.as<Contract>();
      return sums && max_elements(node.shape()) > 1;
    });
  }

  const Dim& trip() const { return iterations_->count; }
  size_t num_carried() const { return (end_.inputs.size() - 1) / 2; }
  Value initial(size_t k) const { return map_[end_.inputs[1 + num_carried() + k].id]; }

  bool find_writes() {
    for (const uint32_t id : members_) {
      const Node& node = graph_.nodes[id];
      if (node.as<End_Loop>() || node.as<Loop_Result>() || node.as<Loop_Size>()) return false;
      for (const Value v : node.inputs) ++users_[v.id];
      if (const auto* carry = node.as<Carry>()) carries_[id] = static_cast<size_t>(carry->index);
    }
    for (size_t k = 0; k < num_carried(); ++k) {
      std::vector<Value> updates;
      Value v = end_.inputs[1 + k];
      for (; members_.contains(v.id) && graph_[v].as<Update>(); v = graph_[v].inputs[0])
        updates.insert(updates.begin(), v);
      const auto carry = carries_.find(v.id);
      if (carry == carries_.end() || carry->second != k) return false;
      Writes& writes = writes_.emplace_back();
      for (const Value update : updates)
        if (!writes.add(graph_, *iterations_, update)) return false;
    }
    return true;
  }

  // The boxes of all iterations side by side, as one.
  Value write_all(const Writes& writes, const Update& update, const Lifted& part, Value target) {
    Value all = by_iteration(part);
    if (writes.stride < 0) all = builder_.flip(all, {0});
    Shape shape = builder_.shape(all);
    Ints order;
    for (int64_t d = 1; d < static_cast<int64_t>(shape.size()); ++d) {
      if (d == writes.axis + 1) order.push_back(0);
      order.push_back(d);
    }
    shape.erase(shape.begin());
    shape[writes.axis] = trip() * writes.size;
    all = builder_.reshape(builder_.permute(all, std::move(order)), shape);
    if (shape == builder_.shape(target)) return all;
    std::vector<Dim> offsets = update.offsets;
    offsets[writes.axis] = iterations_->extreme(writes.offset, writes.stride, true);
    return builder_.add(Update{std::move(offsets)}, {target, all});
  }

  // With the axis of iterations.
  Value by_iteration(const Lifted& lifted) {
    if (lifted.by_iteration) return lifted.value;
    Shape shape = builder_.shape(lifted.value);
    shape.insert(shape.begin(), Dim(1));
    const Value one = builder_.reshape(lifted.value, shape);
    shape[0] = trip();
    return builder_.expand(one, std::move(shape));
  }

  std::optional<Lifted> lift(Value v) {
    if (!members_.contains(v.id)) return Lifted{map_[v.id], false};
    const auto known = lifted_.find(v.id);
    if (known != lifted_.end()) return known->second;
    builder_.set_location(graph_[v].location);
    const std::optional<Lifted> lifted = lift_node(graph_[v], users_[v.id]);
    if (lifted) lifted_[v.id] = *lifted;
    return lifted;
  }

  std::optional<Lifted> lift_node(const Node& node, int num_users) {
    if (node.meta.device || node.inputs.empty()) return std::nullopt;
    if (const auto* shrink = node.as<Shrink>()) {
      const auto whole = lift_shrunk(*shrink, node.inputs[0]);
      return whole ? lift_shrink(*shrink, *whole) : std::nullopt;
    }
    bool is_variable = false;
    for_each_dim(node, [&](const Dim& size) { is_variable |= iterations_->decide(size); });
    for (const Dim& size : node.shape()) is_variable |= iterations_->decide(size);
    if (is_variable) return std::nullopt;
    std::vector<Lifted> inputs;
    for (const Value v : node.inputs) {
      const auto lifted = lift(v);
      if (!lifted) return std::nullopt;
      inputs.push_back(*lifted);
    }
    const auto is_uniform = [](const Lifted& lifted) { return !lifted.by_iteration; };
    if (std::all_of(inputs.begin(), inputs.end(), is_uniform)) return lift_uniform(node, inputs);
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

  // What is the same in all iterations.
  std::optional<Lifted> lift_uniform(const Node& node, const std::vector<Lifted>& inputs) {
    const bool is_known = is_movement(node.kind()) || node.as<Unary>() || node.as<Binop>() ||
                          node.as<Ternary>() || node.as<Cast>() || node.as<Bitcast>() ||
                          node.as<Reduce_Axis>() || node.as<Contract>();
    if (!is_known) return std::nullopt;
    std::vector<Value> operands;
    for (const Lifted& input : inputs) operands.push_back(input.value);
    return Lifted{builder_.copy(node, std::move(operands)), false};
  }

  std::optional<Lifted> lift_operation(const Node& node, const std::vector<Lifted>& inputs) {
    const auto made = [](Value v) { return Lifted{v, true}; };
    const auto shifted = [](Ints axes) {
      for (int64_t& axis : axes) ++axis;
      return axes;
    };
    const auto all = [&](Shape shape) {
      shape.insert(shape.begin(), trip());
      return shape;
    };
    const Value x = by_iteration(inputs[0]);
    switch (node.kind()) {
      case NodeKind::Unary:
      case NodeKind::Binop:
      case NodeKind::Ternary:
      case NodeKind::Cast:
      case NodeKind::Bitcast: {
        std::vector<Value> operands;
        for (const Lifted& input : inputs) operands.push_back(by_iteration(input));
        return made(builder_.copy(node, std::move(operands)));
      }
      case NodeKind::Reshape: return made(builder_.reshape(x, all(node.shape())));
      case NodeKind::Expand: return made(builder_.expand(x, all(node.shape())));
      case NodeKind::Permute: {
        Ints axes = shifted(node.as<Permute>()->axes);
        axes.insert(axes.begin(), 0);
        return made(builder_.permute(x, std::move(axes)));
      }
      case NodeKind::Pad: {
        DimPairs widths = node.as<Pad>()->widths;
        widths.insert(widths.begin(), {0, 0});
        return made(builder_.pad(x, std::move(widths)));
      }
      case NodeKind::Flip: return made(builder_.flip(x, shifted(node.as<Flip>()->axes)));
      case NodeKind::Cat: {
        std::vector<Value> parts;
        for (const Lifted& input : inputs) parts.push_back(by_iteration(input));
        return made(builder_.cat(std::move(parts), node.as<Cat>()->axis + 1));
      }
      case NodeKind::View: return lift_view(*node.as<View>(), x);
      case NodeKind::Reduce_Axis: {
        const auto& reduce = *node.as<Reduce_Axis>();
        return made(builder_.reduce(reduce.op, x, shifted(reduce.axes)));
      }
      case NodeKind::Contract: return lift_contract(*node.as<Contract>(), inputs[0], inputs[1]);
      default: return std::nullopt;
    }
  }

  // Each iteration's part of the operand through the tracker.
  std::optional<Lifted> lift_view(const View& view, Value x) {
    ShapeTracker tracker = view.tracker;
    if (!trip().is_constant()) return std::nullopt;
    const int64_t count = trip().constant();
    int64_t elements = 1;
    for (const Dim& size : builder_.shape(x)) {
      if (!size.is_constant()) return std::nullopt;
      elements *= size.constant();
    }
    // The views are read from the last to the first, and give positions in the view before.
    int64_t below = elements / count;
    for (rune::View& each : tracker.views) {
      each.shape.insert(each.shape.begin(), count);
      each.strides.insert(each.strides.begin(), below);
      if (each.mask) each.mask->insert(each.mask->begin(), {0, count});
      below = num_elements(each.shape) / count;
    }
    return Lifted{builder_.add(View{std::move(tracker)}, {x}), true};
  }

  std::optional<Lifted> lift_contract(const Contract& contract, const Lifted& a, const Lifted& b) {
    Pairs pairs = contract.contract, batch = contract.batch;
    for (Pairs* list : {&pairs, &batch})
      for (auto& [of_a, of_b] : *list) of_a += a.by_iteration, of_b += b.by_iteration;
    if (a.by_iteration && b.by_iteration) {
      batch.insert(batch.begin(), {0, 0});
      return Lifted{builder_.contract(a.value, b.value, std::move(pairs), std::move(batch)), true};
    }
    // The axis of iterations is the first of its operand's rest.
    const auto rest_of_a = static_cast<int64_t>(builder_.shape(a.value).size()) -
                           static_cast<int64_t>(pairs.size() + batch.size());
    const int64_t before = static_cast<int64_t>(batch.size()) + (b.by_iteration ? rest_of_a : 0);
    const Value all = builder_.contract(a.value, b.value, std::move(pairs), std::move(batch));
    Ints order{before};
    for (int64_t d = 0; d < static_cast<int64_t>(builder_.shape(all).size()); ++d)
      if (d != before) order.push_back(d);
    return Lifted{builder_.permute(all, std::move(order)), true};
  }

  // The operand of a Shrink. Of a carried array an iteration may read what it alone writes, and
  // what no iteration writes.
  std::optional<Lifted> lift_shrunk(const Shrink& shrink, Value operand) {
    size_t count = 0;  // of updates before
    Value begin = operand;
    for (; members_.contains(begin.id) && graph_[begin].as<Update>(); ++count)
      begin = graph_[begin].inputs[0];
    const auto carry = carries_.find(begin.id);
    if (carry == carries_.end()) return lift(operand);
    const Writes& writes = writes_[carry->second];
    if (count > 0 && (count > writes.updates.size() || writes.updates[count - 1] != operand))
      return std::nullopt;
    if (!writes.leave_to_one(graph_, *iterations_, shrink)) return std::nullopt;
    const std::optional<Value> array = array_after(count, carry->second);
    return array ? std::optional(Lifted{*array, false}) : std::nullopt;
  }

  std::optional<Lifted> lift_shrink(const Shrink& shrink, Lifted lifted) {
    const int64_t shift = lifted.by_iteration ? 1 : 0;
    DimPairs limits;
    if (lifted.by_iteration) limits.push_back({0, trip()});
    Ints walked, strides;  // axes along which the iterations go, and how far each
    for (size_t d = 0; d < shrink.limits.size(); ++d) {
      const auto& [low, high] = shrink.limits[d];
      limits.push_back({low, high});
      if (!iterations_->decide(low) && !iterations_->decide(high)) continue;
      const std::optional<int64_t> stride = iterations_->growth(low);
      if (!stride || *stride == 0 || iterations_->decide(high - low) || !(high - low).is_constant())
        return std::nullopt;
      limits.back() = {iterations_->extreme(low, *stride, true),
                       iterations_->extreme(high, *stride, false)};
      walked.push_back(shift + static_cast<int64_t>(d));
      strides.push_back(*stride);
    }
    lifted.value = builder_.shrink(lifted.value, std::move(limits));
    if (walked.empty()) return lifted;
    const auto size_of = [&](int64_t axis) {
      const auto& [low, high] = shrink.limits[axis - shift];
      return (high - low).constant();
    };
    if (!lifted.by_iteration && walked.size() == 1 && std::abs(strides[0]) == size_of(walked[0]))
      return divide(lifted.value, walked[0], strides[0]);
    return overlap(lifted, walked, strides, size_of);
  }

  // Parts side by side: the axis as two, of iterations and of elements.
  Lifted divide(Value x, int64_t axis, int64_t stride) {
    Shape shape = builder_.shape(x);
    shape[axis] = Dim(std::abs(stride));
    shape.insert(shape.begin() + axis, trip());
    x = builder_.reshape(x, std::move(shape));
    if (stride < 0) x = builder_.flip(x, {axis});
    Ints order{axis};
    for (int64_t d = 0; d < static_cast<int64_t>(builder_.shape(x).size()); ++d)
      if (d != axis) order.push_back(d);
    return {builder_.permute(x, std::move(order)), true};
  }

  // Other parts: a view of what is stored.
  template <class Size>
  std::optional<Lifted> overlap(const Lifted& lifted, const Ints& walked, const Ints& strides,
                                const Size& size_of) {
    if (!trip().is_constant()) return std::nullopt;
    for (const Dim& size : builder_.shape(lifted.value))
      if (!size.is_constant()) return std::nullopt;
    rune::View view{constants_of(builder_.shape(lifted.value)),
                    contiguous_strides(builder_.shape(lifted.value)), 0, std::nullopt};
    int64_t stride = lifted.by_iteration ? view.strides[0] : 0;
    for (size_t i = 0; i < walked.size(); ++i) {
      const int64_t axis = walked[i], step = strides[i] * view.strides[axis];
      stride += step;
      if (step < 0) view.offset -= step * (trip().constant() - 1);
      view.shape[axis] = size_of(axis);
    }
    if (lifted.by_iteration) {
      view.strides[0] = stride;
    } else {
      view.shape.insert(view.shape.begin(), trip().constant());
      view.strides.insert(view.strides.begin(), stride);
    }
    return Lifted{builder_.add(View{ShapeTracker{{std::move(view)}}}, {lifted.value}), true};
  }

  const Graph& graph_;
  const Node& end_;
  const std::optional<Iterations> iterations_;
  const std::set<uint32_t> members_;
  Builder& builder_;
  const std::vector<Value>& map_;       // by old node: what it has become
  std::map<uint32_t, size_t> carries_;  // Carry nodes, and their indices
  std::map<uint32_t, int> users_;       // in the body
  std::vector<Writes> writes_;          // by index
  std::map<uint32_t, Lifted> lifted_;
  std::map<uint32_t, Value> updated_;  // what the updates of all iterations give
};

}  // namespace

Graph batch_iterations(Graph graph, const Capabilities& caps) {
  const auto is_end = [](const Node& node) { return node.as<End_Loop>() != nullptr; };
  if (!any_node(graph, is_end)) return graph;
  // Inner loops come first: what they have become, the loop around them may take over.
  for (size_t number = 0;;) {
    graph = eliminate_dead_code(graph);
    const LoopTree tree(graph);
    Builder builder;
    std::vector<Value> map(graph.size());
    std::optional<Batcher> batcher;
    for (; number < tree.loops().size(); ++number) {
      batcher.emplace(graph, tree, tree.loops()[number], builder, map);
      if (batcher->may_run(caps)) break;
    }
    if (number == tree.loops().size()) return graph;
    const LoopTree::Loop& loop = tree.loops()[number];
    std::optional<std::vector<Value>> results;
    for (uint32_t id = 0; id < graph.size(); ++id) {
      const Node& node = graph.nodes[id];
      if (Value{id} == loop.end) {
        results = batcher->run();
        if (!results) break;
      }
      builder.set_location(node.location);
      const auto* result = node.as<Loop_Result>();
      if (result && node.inputs[0] == loop.end) {
        map[id] = (*results)[static_cast<size_t>(result->index)];
        continue;
      }
      std::vector<Value> inputs;
      for (const Value v : node.inputs) inputs.push_back(map[v.id]);
      map[id] = builder.copy(node, std::move(inputs));
    }
    if (!results) {
      ++number;
      continue;
    }
    std::vector<Value> outputs;
    for (const Value v : graph.outputs) outputs.push_back(map[v.id]);
    builder.set_outputs(std::move(outputs));
    graph = builder.take();
  }
}

}  // namespace rune::graph
