// Turns iterations that do not depend on one another into elements of a further axis.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "base/error.h"
#include "graph/passes/last_writes.h"
#include "graph/passes/lift_iterations.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

namespace rune::graph {

namespace {

// On cores, fewer iterations than this do not fill a vector.
constexpr int64_t kLeastIterations = 8;

class Batcher : public Lifter {
 public:
  Batcher(const Graph& graph, const LoopTree::Loop& loop, const Iterations& iterations,
          Builder& builder, const std::vector<Value>& map)
      : Lifter(graph, loop, iterations, builder, map), end_(graph[loop.end]) {}

  // Whether what the iterations do allows them to become an axis.
  bool may_run(const Capabilities& caps) {
    if (trip().bound() < 2) return false;
    if (find_sums()) return true;
    return find_writes() &&
           (caps.model == ExecutionModel::Grid || fills_vectors() || writes_products());
  }

  // The carried values after the loop, by index. Nothing if the loop stays. Call `may_run` first.
  std::optional<std::vector<Value>> run() {
    try {
      return results();
    } catch (const UserError&) {
      return std::nullopt;  // movement does not support these symbolic sizes
    }
  }

 private:
  std::optional<std::vector<Value>> results() {
    std::vector<Value> results;
    for (size_t k = 0; k < sums_.size(); ++k) {
      const auto sum = sum_of_all(k);
      if (!sum) return std::nullopt;
      results.push_back(*sum);
    }
    for (size_t k = 0; k < writes_.size(); ++k) {
      const Writes& writes = writes_[k];
      const auto result =
          writes.share_axis ? array_after(writes.boxes.size(), k) : last_writes(writes, k);
      if (!result) return std::nullopt;
      results.push_back(*result);
    }
    return results;
  }

  // Carried array k after its first `count` updates in all iterations. The updates share an axis.
  std::optional<Value> array_after(size_t count, size_t k) {
    if (count == 0) return initial(k);
    const Write& write = writes_[k].boxes[count - 1];
    const auto known = updated_.find(write.update.id);
    if (known != updated_.end()) return known->second;
    const auto before = array_after(count - 1, k);
    const auto boxes = lift_boxes(write);
    if (!before || !boxes) return std::nullopt;
    builder_.set_location(graph_[write.update].location);
    return updated_[write.update.id] = write_boxes(builder_, *boxes, *before);
  }

  std::optional<Boxes> lift_boxes(const Write& write) {
    const auto part = lift(graph_[write.update].inputs[1]);
    if (!part) return std::nullopt;
    builder_.set_location(graph_[write.update].location);
    const Lifted all{by_iteration(*part), true, part->windows};
    return boxes_of_all(builder_, graph_, iterations_, write, all);
  }

  // Carried array k after the loop, if its updates are along several axes.
  std::optional<Value> last_writes(const Writes& writes, size_t k) {
    std::vector<Boxes> boxes;
    for (const Write& write : writes.boxes) {
      auto each = lift_boxes(write);
      if (!each) return std::nullopt;
      boxes.push_back(*std::move(each));
    }
    return write_last(builder_, std::move(boxes), initial(k));
  }

  // Whether iterations fill vectors together, but not alone. If not, the loop stays, because its
  // iterations find their data in a core's first cache.
  bool fills_vectors() const {
    if (trip().bound() < kLeastIterations) return false;
    // Each iteration writes one element, and the iterations' elements are adjacent in memory.
    const auto is_element = [&](const Write& write) {
      const auto rank = std::ssize(graph_[write.update].shape());
      return write.axis == rank - 1 && write.size == 1;
    };
    // Iterations have different lengths, so they end in the middle of a vector.
    const auto has_windows = [](const Write& write) { return !write.windows.empty(); };
    const auto all_writes = [&](const auto& obey) {
      return std::all_of(writes_.begin(), writes_.end(), [&](const Writes& writes) {
        return std::all_of(writes.boxes.begin(), writes.boxes.end(), obey);
      });
    };
    const bool are_elements = all_writes(is_element);
    if (!are_elements && !all_writes(has_windows)) return false;
    return std::none_of(members().begin(), members().end(), [&](uint32_t id) {
      const Node& node = graph_.nodes[id];
      const bool sums = node.as<Reduce_Axis>() || node.as<Contract>();
      return sums && (!are_elements || max_elements(node.shape()) > 1);
    });
  }

  // Whether what is written are sums of products of parts of arrays from before the loop. For all
  // iterations, they are one contraction, which reads each element fewer times.
  bool writes_products() const {
    return std::all_of(writes_.begin(), writes_.end(), [&](const Writes& writes) {
      return std::all_of(writes.boxes.begin(), writes.boxes.end(), [&](const Write& write) {
        return write.windows.empty() && is_of_products(graph_[write.update].inputs[1]);
      });
    });
  }
  bool is_of_products(Value v) const {
    if (!is_member(v)) return false;
    const Node& node = graph_[v];
    if (node.as<Contract>()) return is_part(node.inputs[0]) && is_part(node.inputs[1]);
    const bool is_elementwise = node.as<Reshape>() || node.as<Permute>() || node.as<Unary>() ||
                                node.as<Binop>() || node.as<Ternary>() || node.as<Cast>();
    const auto is_term = [&](Value x) { return is_part(x) || is_of_products(x); };
    const auto& inputs = node.inputs;
    return is_elementwise && std::all_of(inputs.begin(), inputs.end(), is_term) &&
           std::any_of(inputs.begin(), inputs.end(), [&](Value x) { return is_of_products(x); });
  }

  Value initial(size_t k) const { return map_[end_.inputs[1 + num_carried(end_) + k].id]; }

  // Whether each iteration only adds contractions to the carried arrays, or subtracts them. The
  // operands are parts of arrays from before the loop, so they need no memory.
  bool find_sums() {
    for (const uint32_t id : members())
      if (graph_.nodes[id].as<Loop_Size>()) return false;
    for (size_t k = 0; k < num_carried(end_); ++k) {
      const Node& total = graph_[end_.inputs[1 + k]];
      const auto* op = total.as<Binop>();
      if (!is_member(end_.inputs[1 + k]) || !op || !can_reorder_sums(total.dtype())) break;
      if (op->op != AluOp::Add && op->op != AluOp::Sub) break;
      Sum sum{&total, is_carry(total.inputs[0], k) ? 1 : 0, {}, {}};
      const bool adds = sum.term == 1 || op->op == AluOp::Add;
      if (!adds || !is_carry(total.inputs[1 - sum.term], k)) break;
      Value v = total.inputs[sum.term];
      for (; is_member(v) && (graph_[v].as<Reshape>() || graph_[v].as<Permute>());
           v = graph_[v].inputs[0])
        sum.movement.insert(sum.movement.begin(), v);
      if (!is_member(v) || !graph_[v].as<Contract>()) break;
      if (!is_part(graph_[v].inputs[0]) || !is_part(graph_[v].inputs[1])) break;
      sum.contract = v;
      sums_.push_back(std::move(sum));
    }
    if (sums_.size() == num_carried(end_)) return true;
    sums_.clear();
    return false;
  }

  // Contractions round their sums in any order.
  static bool can_reorder_sums(DType dtype) {
    return dtype == DType::Float32 || dtype == DType::Float64 || is_integer(dtype);
  }
  bool is_carry(Value v, size_t k) const {
    const auto* carry = is_member(v) ? graph_[v].as<Carry>() : nullptr;
    return carry && static_cast<size_t>(carry->index) == k;
  }
  bool is_part(Value v) const {
    if (!is_member(v)) return true;
    const Node& node = graph_[v];
    const bool keeps = node.as<Shrink>() || node.as<Reshape>() || node.as<Permute>() ||
                       node.as<Expand>() || node.as<View>();
    return keeps && is_part(node.inputs[0]);
  }

  // Carried array k after the loop: one contraction, which the iterations are an axis of, adds the
  // terms of all of them.
  std::optional<Value> sum_of_all(size_t k) {
    const Sum& sum = sums_[k];
    const Node& node = graph_[sum.contract];
    const auto a = lift(node.inputs[0]), b = lift(node.inputs[1]);
    if (!a || !b || !a->by_iteration || !b->by_iteration) return std::nullopt;
    if (a->has_windows() || b->has_windows()) return std::nullopt;
    Pairs pairs = node.as<Contract>()->contract, batch = node.as<Contract>()->batch;
    for (Pairs* list : {&pairs, &batch})
      for (auto& [of_a, of_b] : *list) ++of_a, ++of_b;
    pairs.insert(pairs.begin(), {0, 0});
    builder_.set_location(node.location);
    Value term = builder_.contract(a->value, b->value, std::move(pairs), std::move(batch));
    for (const Value v : sum.movement) term = builder_.copy(graph_[v], {term});
    builder_.set_location(sum.total->location);
    std::vector<Value> operands{initial(k), term};
    if (sum.term == 0) std::swap(operands[0], operands[1]);
    return builder_.copy(*sum.total, std::move(operands));
  }

  bool find_writes() {
    for (const uint32_t id : members()) {
      const Node& node = graph_.nodes[id];
      if (node.as<End_Loop>() || node.as<Loop_Result>() || node.as<Loop_Size>()) return false;
      if (const auto* carry = node.as<Carry>()) carries_[id] = static_cast<size_t>(carry->index);
    }
    for (size_t k = 0; k < num_carried(end_); ++k) {
      std::vector<Value> updates;
      Value v = end_.inputs[1 + k];
      for (; is_member(v) && graph_[v].as<Update>(); v = graph_[v].inputs[0])
        updates.insert(updates.begin(), v);
      const auto carry = carries_.find(v.id);
      if (carry == carries_.end() || carry->second != k) return false;
      Writes& writes = writes_.emplace_back();
      for (const Value update : updates)
        if (!writes.add(graph_, iterations_, update)) return false;
    }
    return true;
  }

  // An iteration may read parts of a carried array that it has just written, that only it writes,
  // or that neither it nor an earlier iteration has written.
  std::optional<Lifted> lift_part(const Node& node) override {
    const auto& shrink = *node.as<Shrink>();
    const Value operand = node.inputs[0];
    size_t count = 0;  // the number of updates before it
    Value begin = operand;
    for (; is_member(begin) && graph_[begin].as<Update>(); ++count) begin = graph_[begin].inputs[0];
    const auto carry = carries_.find(begin.id);
    if (carry == carries_.end()) return Lifter::lift_part(node);
    const size_t k = carry->second;
    const Writes& writes = writes_[k];
    if (!writes.share_axis && count > 0 && is_box(shrink, operand))
      return lift(graph_[operand].inputs[1]);
    if (count > writes.boxes.size()) return std::nullopt;
    if (count > 0 && writes.boxes[count - 1].update != operand) return std::nullopt;
    std::optional<Value> array;
    if (writes.own(shrink)) {
      array = array_after(count, k);
    } else if (writes.leave(graph_, iterations_, shrink, count)) {
      array = initial(k);
    }
    if (!array) return std::nullopt;
    const size_t rank = shrink.limits.size();
    return lift_shrink(shrink, {*array, false, std::vector<std::optional<Window>>(rank)});
  }

  // Whether the part is the box that the update has written.
  bool is_box(const Shrink& part, Value update) const {
    const std::vector<Dim>& offsets = graph_[update].as<Update>()->offsets;
    const Shape& box = graph_[graph_[update].inputs[1]].shape();
    for (size_t d = 0; d < box.size(); ++d)
      if (part.limits[d] != std::pair<Dim, Dim>{offsets[d], offsets[d] + box[d]}) return false;
    return true;
  }

  // A carried array to which each iteration adds a contraction.
  struct Sum {
    const Node* total;            // the Binop
    int term;                     // which of its operands the contraction is
    std::vector<Value> movement;  // of the contraction's result, in order
    Value contract;
  };

  const Node& end_;
  std::vector<Sum> sums_;               // by index; if there are any, there are no writes
  std::map<uint32_t, size_t> carries_;  // by Carry node: its index
  std::vector<Writes> writes_;          // by index
  std::map<uint32_t, Value> updated_;   // by update: the array after it in all iterations
};

}  // namespace

Graph batch_iterations(Graph graph, const Capabilities& caps) {
  const auto is_end = [](const Node& node) { return node.as<End_Loop>() != nullptr; };
  if (!any_node(graph, is_end)) return graph;
  // Inner loops come first, so that the loop around them may take their results.
  for (size_t number = 0;;) {
    graph = eliminate_dead_code(graph);
    const LoopTree tree(graph);
    Builder builder;
    std::vector<Value> map(graph.size());
    std::unique_ptr<Batcher> batcher;
    for (; number < tree.loops().size(); ++number) {
      const LoopTree::Loop& loop = tree.loops()[number];
      const auto iterations = Iterations::of(graph, tree, loop.end);
      if (!iterations) continue;
      batcher = std::make_unique<Batcher>(graph, loop, *iterations, builder, map);
      if (batcher->may_run(caps)) break;
    }
    if (number >= tree.loops().size()) return graph;  // unused loops have been removed, too
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
