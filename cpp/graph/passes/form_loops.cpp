// Turns loops into Loop_Nests, which are compiled as loops, or expands their iterations one after
// the other.
#include <functional>
#include <map>
#include <set>
#include <string>

#include "base/error.h"
#include "graph/attribute_dims.h"
#include "graph/loops.h"
#include "graph/passes/iterations.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

namespace rune::graph {

namespace {

// The target with `part` at these offsets, as a selection by a mask.
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

// Initial values with at least this many elements are stored in memory.
constexpr double kLargeArray = 1 << 16;
constexpr double kMostNodes = 30000;

class Former {
 public:
  Former(const Graph& graph, const Capabilities& caps)
      : graph_(graph), caps_(caps), tree_(graph), map_(graph.size()) {}

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
    if (node.as<End_Loop>()) return stays_loop({id}) ? make_nest({id}) : run_loop({id});
    if (const auto* result = node.as<Loop_Result>()) {
      if (nested_.contains(id)) return;  // make_nest has set its value
      const Node& end = graph_[node.inputs[0]];
      map_[id] = carried_.at(end.inputs[0])[result->index];
      return;
    }
    if (const auto* counter = node.as<Loop_Counter>()) {
      const int64_t value = counters_.at(counter->var.name);
      map_[id] = builder_.constant(Scalar::of(DType::Int64, value));
      return;
    }
    if (node.as<Loop_Size>())
      user_error(ErrorKind::Unsupported, "loop: cannot expand a loop with sizes that data decide",
                 node.location.empty() ? "" : ", at " + node.location);
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
    RUNE_CHECK(!graph_[end].as<End_Loop>()->goes_on,
               "a loop that a condition ends is in what is expanded");
    if (counters_.empty() && expanded_nodes(graph_, tree_, loop) > kMostNodes)
      user_error(ErrorKind::Unsupported, "loop: cannot expand to ",
                 expanded_nodes(graph_, tree_, loop), " operations (at most ", kMostNodes, ")",
                 graph_[end].location.empty() ? "" : ", at " + graph_[end].location);
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

  // Whether a loop that is in no other loop is compiled as a loop.
  bool stays_loop(Value end) const {
    if (!counters_.empty()) return false;
    const LoopTree::Loop& loop = tree_.ended_by(end);
    bool has_inner = false, has_condition = false, has_sizes = false;
    const Node* other = nullptr;
    for (const uint32_t id : nodes_of(loop)) {
      const Node& node = graph_.nodes[id];
      has_inner |= node.as<End_Loop>() && Value{id} != end;
      has_condition |= node.as<End_Loop>() && node.as<End_Loop>()->goes_on;
      has_sizes |= node.as<Loop_Size>() != nullptr;
      if (!can_be_nested(node)) other = &node;
    }
    if (other && has_condition)
      user_error(ErrorKind::Unsupported, "loop: cannot contain ", name_of(other->kind()),
                 " (a condition ends the loop, which is one kernel)",
                 other->location.empty() ? "" : ", at " + other->location);
    if (other) return false;
    if (has_condition || has_sizes) return true;  // they are known only when the program runs
    const auto& range = *graph_[end].as<End_Loop>();
    if (!range.start.is_constant() || !range.stop.is_constant()) return true;
    if (caps_.model != ExecutionModel::Cores)
      return expanded_nodes(graph_, tree_, loop) > caps_.max_expanded_nodes;
    return has_inner || !expands_on_cores(graph_, tree_, loop, caps_);
  }

  bool can_be_nested(const Node& node) const {
    if (node.meta.device) return false;
    switch (node.kind()) {
      case NodeKind::Host_Callback:
      case NodeKind::Custom:
      case NodeKind::Assign:
      case NodeKind::Buffer:
      case NodeKind::Multi:
      case NodeKind::Copy: return false;
      default: return true;
    }
  }

  // The nodes of the loop and of all loops in it, with their ends.
  std::set<uint32_t> nodes_of(const LoopTree::Loop& loop) const {
    std::set<uint32_t> nodes(loop.members.begin(), loop.members.end());
    nodes.insert(loop.end.id);
    for (const uint32_t id : loop.members)
      if (graph_.nodes[id].as<End_Loop>()) nodes.merge(nodes_of(tree_.ended_by({id})));
    return nodes;
  }

  // Consecutive updates of an array that become selections by masks. On a grid, computing a small
  // array once takes less time than a launch for each of its parts.
  std::set<uint32_t> selected_updates(std::set<uint32_t> nodes) const {
    constexpr size_t kFewUpdates = 3;
    constexpr int64_t kMostBytes = 1 << 21;
    std::set<uint32_t> result;
    if (caps_.model != ExecutionModel::Grid) return result;
    // Iterations that write different parts may run at the same time in threads.
    for (const LoopTree::Loop& loop : tree_.loops()) {
      if (!nodes.contains(loop.end.id) || !have_own_parts(graph_, tree_, loop)) continue;
      for (const uint32_t id : nodes_of(loop)) nodes.erase(id);
    }
    std::map<uint32_t, std::vector<uint32_t>> chains;  // by the value before the first update
    std::map<uint32_t, uint32_t> first;                // by update: that value
    for (const uint32_t id : nodes) {
      const Node& node = graph_.nodes[id];
      if (!node.as<Update>() || !is_constant(node.shape()) || bytes_of(node) > kMostBytes) continue;
      const uint32_t target = node.inputs[0].id;
      const auto before = first.find(target);
      first[id] = before == first.end() ? target : before->second;
      chains[first[id]].push_back(id);
    }
    for (const auto& [value, updates] : chains)
      if (updates.size() >= kFewUpdates) result.insert(updates.begin(), updates.end());
    return result;
  }

  // Replaces the results of a loop by Loop_Nests.
  void make_nest(Value end) {
    const std::set<uint32_t> nodes = nodes_of(tree_.ended_by(end));
    Builder nest;
    std::map<uint32_t, Value> inside;
    for (uint32_t id = 0; id < end.id; ++id)
      if (const auto* define = graph_.nodes[id].as<Define_Var>())
        inside[id] = nest.add(*define, {});
    std::vector<Value> operands;
    const std::function<Value(Value)> bring = [&](Value v) {
      const auto known = inside.find(v.id);
      if (known != inside.end()) return known->second;
      const Node& node = graph_[v];
      // Constants, even converted ones, and movement have no memory of their own, so they go into
      // the nest.
      Value& here = inside[v.id];
      const bool moves = is_movement(node.kind()) && !node.as<View>() && !node.as<Pad>();
      const bool is_constant =
          node.as<Const_Scalar>() || (node.as<Cast>() && graph_[node.inputs[0]].as<Const_Scalar>());
      if (moves || is_constant) {
        std::vector<Value> inputs;
        for (const Value input : node.inputs) inputs.push_back(bring(input));
        return inside[v.id] = nest.copy(node, std::move(inputs));
      }
      operands.push_back(map_[v.id]);
      return here = nest.placeholder(node.dtype(), node.shape());
    };
    // Large initial values are stored in memory before the loop, because groups of iterations that
    // run at the same time cannot fill them.
    const std::vector<Value>& ends = graph_[end].inputs;
    for (size_t k = 1 + num_carried(graph_[end]); k < ends.size(); ++k) {
      const Node& initial = graph_[ends[k]];
      if (max_elements(initial.shape()) < kLargeArray || inside.contains(ends[k].id)) continue;
      operands.push_back(map_[ends[k].id]);
      inside[ends[k].id] = nest.placeholder(initial.dtype(), initial.shape());
    }
    const std::set<uint32_t> selected = selected_updates(nodes);
    for (const uint32_t id : nodes) {
      const Node& node = graph_.nodes[id];
      nest.set_location(node.location);
      std::vector<Value> inputs;
      for (const Value v : node.inputs) inputs.push_back(bring(v));
      if (selected.contains(id))
        inside[id] = select(nest, inputs[0], inputs[1], node.as<Update>()->offsets);
      else
        inside[id] = nest.copy(node, std::move(inputs));
    }
    std::vector<Value> results;
    std::vector<uint32_t> ids;
    for (uint32_t id = end.id + 1; id < graph_.size(); ++id) {
      const Node& node = graph_.nodes[id];
      if (!node.as<Loop_Result>() || node.inputs[0] != end) continue;
      ids.push_back(id);
      results.push_back(nest.copy(node, {inside.at(end.id), inside.at(node.inputs[1].id)}));
    }
    nest.set_outputs(std::move(results));
    const Subgraph subgraph{std::make_shared<const Graph>(eliminate_dead_code(nest.graph()))};
    for (size_t i = 0; i < ids.size(); ++i) {
      nested_.insert(ids[i]);
      map_[ids[i]] = builder_.add(Loop_Nest{static_cast<int64_t>(i), subgraph}, operands);
    }
  }

  const Graph& graph_;
  const Capabilities& caps_;
  const LoopTree tree_;
  std::set<uint32_t> nested_;  // the Loop_Results that are those of Loop_Nests
  Builder builder_;
  std::vector<Value> map_;  // by old node: its new value; in a loop, of the present iteration
  std::map<std::string, int64_t> counters_;  // of the loops that are being expanded
  // By counter: the loop's present carried values, by index.
  std::map<Value, std::vector<Value>> carried_;
};

}  // namespace

Graph form_loops(const Graph& graph, const Capabilities& caps) {
  const auto is_of_loop = [](const Node& node) {
    return node.as<Loop_Counter>() || node.as<Update>();
  };
  if (!any_node(graph, is_of_loop)) return graph;
  const Graph live = eliminate_dead_code(graph);
  return Former(live, caps).run();
}

}  // namespace rune::graph
