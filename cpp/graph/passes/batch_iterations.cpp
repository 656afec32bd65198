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

  // Whether the iterations' writes allow them to become an axis.
  bool may_run(const Capabilities& caps) {
    if (trip().bound() < 2 || !find_writes()) return false;
    return caps.model == ExecutionModel::Grid || fills_vectors();
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

  Value initial(size_t k) const { return map_[end_.inputs[1 + num_carried(end_) + k].id]; }

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

  const Node& end_;
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
