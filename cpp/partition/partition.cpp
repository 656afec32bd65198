#include "partition/partition.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/interrupt.h"
#include "partition/block.h"
#include "partition/chunks.h"
#include "partition/needs.h"

namespace rune::partition {

using graph::Graph;
using graph::Node;
using graph::Value;

namespace {

// A value whose blocks a pass computes. For each axis of its box: the axis of the grid, or -1, and
// the size that the axis has if it is not in the grid.
struct Target {
  Value value;
  bool is_partial = false;
  Ints grid_axes, sizes;
};

class Partitioner {
 public:
  Partitioner(const Graph& graph, const std::vector<Chunks>& arguments)
      : graph_(graph),
        chunking_(graph, arguments),
        levels_(graph.size()),
        ready_(graph.size(), kNever) {}

  Plan run() {
    for (uint32_t id = 0; id < graph_.size(); ++id) visit({id});
    for (const Value v : graph_.outputs) {
      if (!arrays_.contains(v)) {
        add_array(v, Array::Kind::Computed);
        add_target(v, false, chunking_.of(v), levels_[v.id]);
      }
      plan_.outputs.push_back(arrays_.at(v));
    }
    for (auto& [key, targets] : targets_) add_pass(key.first, targets);
    return std::move(plan_);
  }

 private:
  static constexpr size_t kNever = std::numeric_limits<size_t>::max();

  // The targets of a pass.
  struct Targets {
    Chunks grid;
    std::vector<Target> all;
    bool is_call = false;
  };

  void visit(Value v) {
    const Node& node = graph_[v];
    size_t& level = levels_[v.id];
    for (const Value operand : node.inputs) level = std::max(level, levels_[operand.id]);
    for (const size_t i : chunking_.stored_operands(v)) {
      store(node.inputs[i]);
      level = std::max(level, ready_[node.inputs[i].id]);
    }
    if (const auto* argument = node.as<graph::Placeholder>()) {
      add_array(v, Array::Kind::Argument, argument->index);
      ready_[v.id] = 0;
    } else if (chunking_.is_reduced_in_parts(v)) {
      add_array(v, Array::Kind::Combined);
      add_target(v, true, chunking_.to_reduce(v), level);
      ready_[v.id] = ++level;
    } else if (const auto* call = node.as<graph::Host_Callback>()) {
      add_array(v, Array::Kind::Computed);
      add_to_call(v, call->call, level);
      ready_[v.id] = ++level;
    } else if (chunking_.is_stored(v)) {
      store(v);
      level = ready_[v.id];
    }
  }

  // Stores the value as an array, which passes of later levels read.
  void store(Value v) {
    if (ready_[v.id] != kNever) return;
    ready_[v.id] = levels_[v.id] + 1;
    add_array(v, Array::Kind::Computed);
    add_target(v, false, chunking_.of(v), levels_[v.id]);
  }

  void add_array(Value v, Array::Kind kind, int64_t number = 0) {
    arrays_[v] = plan_.arrays.size();
    plan_.arrays.push_back({kind, number, graph_[v].dtype(), chunking_.of(v)});
  }

  // A target with these chunks. Adds the axes of its grid to `grid`.
  static Target target_of(Value v, bool is_partial, const Chunks& chunks, Chunks& grid) {
    Target target{v, is_partial, {}, {}};
    for (const Ints& axis : chunks) {
      target.grid_axes.push_back(axis.size() > 1 ? static_cast<int64_t>(grid.size()) : -1);
      target.sizes.push_back(axis[0]);
      if (axis.size() > 1) grid.push_back(axis);
    }
    return target;
  }

  void add_to_call(Value v, int64_t call, size_t level) {
    Chunks grid;
    Target target = target_of(v, false, chunking_.of(v), grid);
    const auto [known, is_new] = calls_.try_emplace(call, level, targets_.size());
    if (is_new) targets_[known->second] = {std::move(grid), {}, true};
    targets_.at(known->second).all.push_back(std::move(target));
  }

  void add_target(Value v, bool is_partial, const Chunks& chunks, size_t level) {
    Chunks grid;
    Target target = target_of(v, is_partial, chunks, grid);
    for (auto& [key, targets] : targets_)
      if (key.first == level && targets.grid == grid && !targets.is_call) {
        targets.all.push_back(std::move(target));
        return;
      }
    targets_[{level, targets_.size()}] = {std::move(grid), {std::move(target)}};
  }

  Result result_of(const Target& target) const {
    Result result{arrays_.at(target.value), target.grid_axes, {}, {}};
    if (!target.is_partial) return result;
    const Node& node = graph_[target.value];
    const auto* reduce = node.as<graph::Reduce_Axis>();
    result.combine = reduce ? reduce->op : ReduceOp::Add;
    const std::vector<bool> reduced = reduced_axes(graph_, target.value);
    for (size_t i = 0; i < reduced.size(); ++i) {
      if (!reduced[i]) continue;
      if (target.grid_axes[i] >= 0) result.reduced.push_back(target.grid_axes[i]);
      result.grid_axes[i] = -1;
    }
    result.grid_axes.resize(node.shape().size());
    return result;
  }

  void add_pass(size_t level, const Targets& targets) {
    Pass pass{level, targets.grid, {}, {}, {}, {}};
    for (const Target& target : targets.all) pass.results.push_back(result_of(target));
    std::vector<Box> ranges;  // of each chunk of each axis of the grid
    size_t blocks = 1;
    for (const Ints& axis : targets.grid) {
      Box& list = ranges.emplace_back();
      for (const int64_t end : ends_of(axis))
        list.emplace_back(list.empty() ? 0 : list.back().second, end);
      blocks *= axis.size();
    }
    if (targets.is_call) {
      const auto* call = graph_[targets.all[0].value].as<graph::Host_Callback>();
      pass.call = {call->name, call->call, {}};
      for (const Target& target : targets.all)
        pass.call->results.push_back(graph_[target.value].as<graph::Host_Callback>()->result);
    }
    std::vector<bool> given;
    for (const size_t ready : ready_) given.push_back(ready <= level);
    std::vector<size_t> at(targets.grid.size());
    std::map<std::vector<int64_t>, size_t> programs;
    for (size_t block = 0; block < blocks; ++block) {
      check_interrupt();
      if (pass.call)
        add_call(pass, targets.all[0], box_of(targets.all[0], ranges, at));
      else
        add_block(pass, targets, ranges, at, given, programs);
      for (size_t axis = at.size(); axis-- > 0;) {
        if (++at[axis] < targets.grid[axis].size()) break;
        at[axis] = 0;
      }
    }
    plan_.passes.push_back(std::move(pass));
  }

  // The box of a target at a position of the grid, whose axes have these ranges.
  static Box box_of(const Target& target, const std::vector<Box>& ranges,
                    const std::vector<size_t>& at) {
    Box box;
    for (size_t i = 0; i < target.sizes.size(); ++i) {
      const int64_t axis = target.grid_axes[i];
      box.push_back(axis < 0 ? std::pair<int64_t, int64_t>{0, target.sizes[i]}
                             : ranges[axis][at[axis]]);
    }
    return box;
  }

  void add_call(Pass& pass, const Target& target, const Box& box) {
    std::vector<Operand> operands;
    for (Need& need : needs_of(graph_, target.value, box))
      operands.push_back(
          {arrays_.at(graph_[target.value].inputs[need.operand]), std::move(need.box)});
    pass.operands.push_back(std::move(operands));
  }

  void add_block(Pass& pass, const Targets& targets, const std::vector<Box>& ranges,
                 const std::vector<size_t>& at, const std::vector<bool>& given,
                 std::map<std::vector<int64_t>, size_t>& programs) {
    std::vector<Root> roots;
    for (const Target& target : targets.all)
      roots.push_back({target.value, target.is_partial, box_of(target, ranges, at)});
    Block block(graph_, given, std::move(roots));
    const auto [known, is_new] = programs.try_emplace(block.key(), plan_.programs.size());
    if (is_new) plan_.programs.push_back(block.program());
    pass.programs.push_back(known->second);
    std::vector<Operand> operands;
    for (Block::Operand& operand : block.operands())
      operands.push_back({arrays_.at(operand.value), std::move(operand.box)});
    pass.operands.push_back(std::move(operands));
  }

  const Graph& graph_;
  const Chunking chunking_;
  std::vector<size_t> levels_;  // by node
  std::vector<size_t> ready_;   // by node, the first level whose passes read its array
  std::map<Value, size_t> arrays_;
  std::map<int64_t, std::pair<size_t, size_t>> calls_;  // keys of targets_, by call
  std::map<std::pair<size_t, size_t>, Targets> targets_;
  Plan plan_;
};

}  // namespace

Plan partition(const Graph& graph, const std::vector<Chunks>& arguments) {
  return Partitioner(graph, arguments).run();
}

}  // namespace rune::partition
