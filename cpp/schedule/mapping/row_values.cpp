#include "schedule/mapping/row_values.h"

#include <optional>
#include <set>

#include "schedule/analysis/cost.h"

namespace rune::schedule {

namespace {

// The cost of a store and a load of an element in cache, in simple operations.
constexpr double kStoreAndLoad = 8;

class RowKeeper {
 public:
  RowKeeper(const Graph& graph, const Capabilities& caps, Kernel& kernel)
      : graph_(graph),
        caps_(caps),
        kernel_(kernel),
        outer_(outer_axes(kernel)),
        axes_(axis_variables(kernel.iter)) {
    for (const Value v : kernel.inputs) known_.insert(v.id);
    for (const Stage& stage : kernel.stages())
      if (stage.kind == StageKind::Reduce)
        for (const StageValue& value : stage.values) known_.insert(value.value.id);
  }

  void run() {
    for (const int64_t axis : outer_)
      if (kernel_.iter.tiles[axis].back() != 1) return;
    for (size_t s = 0; s < kernel_.stages().size(); ++s) keep_operand(s);
  }

 private:
  // The elements of a value that a stage reads at its points.
  struct Row {
    Index index;
    Ints strides;  // by axis, of the row-major position
  };

  std::optional<Row> row_of(Value v, const Demand& demand) const {
    if (!demand.mask.is_true()) return std::nullopt;
    Row row{demand.index, {}};
    const sym::Expr position = flatten_index(demand.index, graph_[v].shape());
    for (size_t i = 0; i < axes_.size(); ++i) {
      const auto along = position.coefficient_of(static_cast<uint32_t>(i));
      if (!along) return std::nullopt;
      row.strides.push_back(*along);
    }
    for (const uint32_t variable : position.variables())
      if (variable >= axes_.size()) return std::nullopt;
    return row;
  }

  // Whether two stages go over the same elements at each outer point.
  bool covers_same(const Row& a, const Ints& axes_of_a, const Row& b, const Ints& axes_of_b) const {
    for (const int64_t axis : outer_)
      if (a.strides[axis] != b.strides[axis]) return false;
    const auto steps = [&](const Row& row, const Ints& axes) {
      std::multiset<std::pair<int64_t, int64_t>> result;
      for (const int64_t axis : axes)
        result.insert({row.strides[axis], kernel_.iter.axes[axis].extent()});
      return result;
    };
    return steps(a, axes_of_a) == steps(b, axes_of_b);
  }

  // The walk over the values that a stage computes. It is done once.
  const Walk& walk_stage(size_t s) {
    walks_.resize(kernel_.stages().size());
    if (walks_[s]) return *walks_[s];
    const Stage& stage = kernel_.stages()[s];
    std::vector<Seed> seeds;
    for (Seed& seed : stage_seeds(graph_, stage, axes_))
      if (stage.kind == StageKind::Reduce || !known_.count(seed.value.id))
        seeds.push_back(std::move(seed));
    return walks_[s].emplace(walk(graph_, seeds, [&](Value v, const std::vector<Demand>&) {
      return known_.count(v.id) > 0;
    }));
  }

  double operations(Value v, const Row& row) const {
    double total = node_operations(caps_, graph_, graph_[v]);
    walk(graph_, std::vector<Access>{{v, row.index, {}}}, [&](Value w, const std::vector<Demand>&) {
      if (known_.count(w.id)) return true;
      if (w != v) total += node_operations(caps_, graph_, graph_[w]);
      return false;
    });
    return total;
  }

  void keep_operand(size_t s) {
    const Stage& stage = kernel_.stages()[s];
    if (stage.kind != StageKind::Reduce || stage.axes.empty() || stage.keeps) return;
    const graph::Node& reduction = graph_[stage.values[0].value];
    if (!reduction.as<graph::Reduce_Axis>()) return;
    const Value v = reduction.inputs[0];
    if (known_.count(v.id) || kernel_.scratch_of(v)) return;
    const std::optional<Row> row = only_row(v, walk_stage(s));
    if (!row || operations(v, *row) < kStoreAndLoad) return;
    std::optional<Scratch> buffer = scratch(v, *row, stage);
    if (!buffer) return;
    std::vector<size_t> takers;
    for (size_t t = s + 1; t < kernel_.stages().size(); ++t) {
      const Walk& walked = walk_stage(t);
      if (!walked.demands.count(v.id)) continue;
      const std::optional<Row> other = only_row(v, walked);
      if (other && covers_same(*row, stage.axes, *other, kernel_.stages()[t].axes))
        takers.push_back(t);
    }
    if (takers.empty()) return;
    std::vector<Stage>& stages = kernel_.mutable_stages();
    stages[s].keeps = StageValue{v, row->strides};
    for (const size_t t : takers) {
      if (!stages[t].takes) stages[t].takes.emplace();
      stages[t].takes->push_back(v);
    }
    kernel_.scratch.push_back(std::move(*buffer));
  }

  std::optional<Row> only_row(Value v, const Walk& walked) const {
    const auto it = walked.demands.find(v.id);
    if (it == walked.demands.end() || it->second.size() != 1) return std::nullopt;
    return row_of(v, it->second[0]);
  }

  // Scratch memory for the row of an outer point: the dimensions along the stage's own axes,
  // row-major.
  std::optional<Scratch> scratch(Value v, const Row& row, const Stage& stage) const {
    const Ints shape = bounds_of(graph_[v].shape());
    Scratch info{v, Ints(shape.size(), 1), Ints(shape.size(), 0)};
    int64_t elements = 1, own = 1;
    for (size_t d = shape.size(); d-- > 0;) {
      size_t inner = 0;
      const std::vector<uint32_t> variables = row.index[d].variables();
      for (const uint32_t variable : variables) inner += contains(stage.axes, variable);
      if (inner == 0) continue;
      if (inner != variables.size()) return std::nullopt;
      info.shape[d] = shape[d];
      info.strides[d] = elements;
      elements *= shape[d];
    }
    for (const int64_t axis : stage.axes) {
      if (kernel_.iter.axes[axis].is_symbolic()) return std::nullopt;
      own *= kernel_.iter.axes[axis].extent();
    }
    info.elements = elements;
    if (own != elements || elements * size_of(graph_[v].dtype()) > caps_.l2_bytes / 2)
      return std::nullopt;
    return info;
  }

  const Graph& graph_;
  const Capabilities& caps_;
  Kernel& kernel_;
  const Ints outer_;
  const std::vector<sym::Expr> axes_;
  std::set<uint32_t> known_;                // inputs and reductions
  std::vector<std::optional<Walk>> walks_;  // by stage
};

}  // namespace

void keep_row_values(const Graph& graph, const Capabilities& caps, Kernel& kernel) {
  RowKeeper(graph, caps, kernel).run();
}

}  // namespace rune::schedule
