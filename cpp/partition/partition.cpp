#include "partition/partition.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/interrupt.h"
#include "partition/block.h"
#include "partition/chunks.h"

namespace rune::partition {

using graph::Graph;
using graph::Node;
using graph::Value;

namespace {

// A value that a pass computes blocks of. By axis of its box: the axis of the grid, or -1, and then
// its size.
struct Target {
  Value value;
  bool is_partial = false;
  Ints grid_axes, sizes;
};

class Partitioner {
 public:
  Partitioner(const Graph& graph, const std::vector<Chunks>& arguments)
      : graph_(graph), chunking_(graph, arguments), given_(graph.size()), levels_(graph.size()) {}

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
  // Passes in order of their level, then of their grid's first target.
  struct Targets {
    Chunks grid;
    std::vector<Target> all;
  };

  void visit(Value v) {
    const Node& node = graph_[v];
    size_t& level = levels_[v.id];
    for (const Value operand : node.inputs) level = std::max(level, levels_[operand.id]);
    if (const auto* argument = node.as<graph::Placeholder>()) {
      add_array(v, Array::Kind::Argument, argument->index);
      given_[v.id] = true;
    } else if (chunking_.is_reduced_in_parts(v)) {
      add_array(v, Array::Kind::Combined);
      add_target(v, true, chunking_.to_reduce(v), level);
      given_[v.id] = true;
      ++level;
    }
  }

  void add_array(Value v, Array::Kind kind, int64_t number = 0) {
    arrays_[v] = plan_.arrays.size();
    plan_.arrays.push_back({kind, number, graph_[v].dtype(), chunking_.of(v)});
  }

  void add_target(Value v, bool is_partial, const Chunks& chunks, size_t level) {
    Target target{v, is_partial, {}, {}};
    Chunks grid;
    for (const Ints& axis : chunks) {
      target.grid_axes.push_back(axis.size() > 1 ? static_cast<int64_t>(grid.size()) : -1);
      target.sizes.push_back(axis[0]);
      if (axis.size() > 1) grid.push_back(axis);
    }
    for (auto& [key, targets] : targets_)
      if (key.first == level && targets.grid == grid) {
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
    Pass pass{level, targets.grid, {}, {}, {}};
    for (const Target& target : targets.all) pass.results.push_back(result_of(target));
    std::vector<Box> ranges;  // by axis of the grid and chunk
    size_t blocks = 1;
    for (const Ints& axis : targets.grid) {
      Box& list = ranges.emplace_back();
      for (const int64_t end : ends_of(axis))
        list.emplace_back(list.empty() ? 0 : list.back().second, end);
      blocks *= axis.size();
    }
    std::vector<size_t> at(targets.grid.size());
    std::map<std::vector<int64_t>, size_t> programs;
    for (size_t block = 0; block < blocks; ++block) {
      check_interrupt();
      add_block(pass, targets, ranges, at, programs);
      for (size_t axis = at.size(); axis-- > 0;) {
        if (++at[axis] < targets.grid[axis].size()) break;
        at[axis] = 0;
      }
    }
    plan_.passes.push_back(std::move(pass));
  }

  void add_block(Pass& pass, const Targets& targets, const std::vector<Box>& ranges,
                 const std::vector<size_t>& at, std::map<std::vector<int64_t>, size_t>& programs) {
    std::vector<Root> roots;
    for (const Target& target : targets.all) {
      Root root{target.value, target.is_partial, {}};
      for (size_t i = 0; i < target.sizes.size(); ++i) {
        const int64_t axis = target.grid_axes[i];
        root.box.push_back(axis < 0 ? std::pair<int64_t, int64_t>{0, target.sizes[i]}
                                    : ranges[axis][at[axis]]);
      }
      roots.push_back(std::move(root));
    }
    Block block(graph_, given_, std::move(roots));
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
  std::vector<bool> given_;     // by node, what programs of blocks take
  std::vector<size_t> levels_;  // by node
  std::map<Value, size_t> arrays_;
  std::map<std::pair<size_t, size_t>, Targets> targets_;
  Plan plan_;
};

}  // namespace

Plan partition(const Graph& graph, const std::vector<Chunks>& arguments) {
  return Partitioner(graph, arguments).run();
}

}  // namespace rune::partition
