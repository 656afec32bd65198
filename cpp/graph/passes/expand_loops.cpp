// Loops as their iterations, one after the other.
#include <map>
#include <string>

#include "base/error.h"
#include "graph/attribute_dims.h"
#include "graph/passes/loops.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

namespace rune::graph {

namespace {

// The target with the part in its place, as a selection by a mask.
Value select(Builder& b, Value target, Value part, const std::vector<Dim>& offsets) {
  const Shape &whole = b.shape(target), &box = b.shape(part);
  if (box == whole) return part;
  if (max_elements(box) == 0) return target;
  DimPairs around;
  for (size_t d = 0; d < whole.size(); ++d)
    around.push_back({offsets[d], whole[d] - offsets[d] - box[d]});
  const Value inside = b.pad(b.full(Scalar::of(DType::Bool, true), box), around);
  return b.alu(AluOp::Where, {inside, b.pad(part, around), target});
}

class Expander {
 public:
  explicit Expander(const Graph& graph) : graph_(graph), tree_(graph), map_(graph.size()) {}

  Graph run() {
    for (const uint32_t id : tree_.outside()) add(id);
    std::vector<Value> outputs;
    for (const Value v : graph_.outputs) outputs.push_back(map_[v.id]);
    builder_.set_outputs(std::move(outputs));
    return builder_.take();
  }

 private:
  void add(uint32_t id) {
    const Node& node = graph_.nodes[id];
    builder_.set_location(node.location);
    if (node.as<Carry>()) {
      map_[id] = carried_.at(node.inputs[1])[node.as<Carry>()->index];
      return;
    }
    if (node.as<End_Loop>()) return run_loop({id});
    if (const auto* result = node.as<Loop_Result>()) {
      const Node& end = graph_[node.inputs[0]];
      map_[id] = carried_.at(end.inputs[0])[result->index];
      return;
    }
    if (const auto* counter = node.as<Loop_Counter>()) {
      const int64_t value = counters_.at(counter->var.name);
      map_[id] = builder_.constant(Scalar::of(DType::Int64, value));
      return;
    }
    std::vector<Value> inputs;
    for (const Value v : node.inputs) inputs.push_back(map_[v.id]);
    Payload payload = node.payload;
    change_dims(payload, [&](Dim& size) { size = size.with(counters_); });
    if (const auto* update = std::get_if<Update>(&payload)) {
      map_[id] = select(builder_, inputs[0], inputs[1], update->offsets);
      return;
    }
    map_[id] = builder_.add(std::move(payload), std::move(inputs), node.meta);
  }

  void run_loop(Value end) {
    const LoopTree::Loop& loop = tree_.ended_by(end);
    const auto& range = *graph_[end].as<End_Loop>();
    const std::vector<Value>& operands = graph_[end].inputs;
    const size_t count = num_carried(graph_[end]);
    std::vector<Value>& carried = carried_[operands[0]];
    carried.resize(count);
    for (size_t k = 0; k < count; ++k) carried[k] = map_[operands[1 + count + k].id];
    const int64_t start = range.start.with(counters_).constant();
    const int64_t stop = range.stop.with(counters_).constant();
    for (int64_t i = start; range.step > 0 ? i < stop : i > stop; i += range.step) {
      counters_[loop.counter.name] = i;
      for (const uint32_t id : loop.members) add(id);
      std::vector<Value> next;
      for (size_t k = 0; k < count; ++k) next.push_back(map_[operands[1 + k].id]);
      carried = std::move(next);
    }
    counters_.erase(loop.counter.name);
  }

  const Graph& graph_;
  const LoopTree tree_;
  Builder builder_;
  std::vector<Value> map_;  // by old node: what it is now, of a loop's in its present iteration
  std::map<std::string, int64_t> counters_;  // of the loops that run
  // By counter: what the loop carries now, by index.
  std::map<Value, std::vector<Value>> carried_;
};

}  // namespace

Graph expand_loops(const Graph& graph) {
  const auto is_of_loop = [](const Node& node) {
    return node.as<Loop_Counter>() || node.as<Update>();
  };
  if (!any_node(graph, is_of_loop)) return graph;
  return Expander(eliminate_dead_code(graph)).run();
}

}  // namespace rune::graph
