#include "lower/passes/sequential_stages.h"

#include "alu/eval.h"

namespace rune::lower {

using schedule::Stage;
using schedule::StageValue;
using sym::Expr;

namespace {

class SequentialStage : Lowering {
 public:
  SequentialStage(KernelContext& context, const Stage& stage) : Lowering(context), stage_(stage) {}

  void scan(const Points& outer) {
    const StageValue& value = stage_.values[0];
    const graph::Node& node = graph_[value.value];
    const ReduceOp op = node.as<graph::Scan>()->op;
    const auto operand = [&](size_t i) {
      return [&, i](const Index& index, const Point&) {
        return schedule::scanned_accesses(graph_, value.value, index)[i];
      };
    };
    const Var none = builder_.constant(neutral(op, node.dtype()));
    std::vector<Var> initial(outer.size(), none);
    if (node.inputs.size() == 2) initial = at_points(outer, operand(1));
    const int lanes = context_.kernel.iter.mapping.vec.empty() ? 1 : index_.lanes();
    std::vector<Var> sums;
    for (const Var v : initial) sums.push_back(builder_.acc(builder_.splat(v, lanes)));
    nest_.nest(stage_.axes, outer, false, [&](const Points& points) {
      const std::vector<Var> elements = at_points(points, operand(0));
      for (size_t i = 0; i < points.size(); ++i) {
        const Var sum =
            builder_.alu_here(alu_of(op), {sums[i], builder_.splat(elements[i], lanes)});
        builder_.assign(sums[i], sum);
        memory_.store(
            value.value,
            {schedule::value_position(stage_, value, points[i].axes), sum, points[i].mask},
            context_.is_nontemporal(value.value));
      }
    });
  }

  void scatter(const Points& outer) {
    const StageValue& value = stage_.values[0];
    const graph::Node& node = graph_[value.value];
    const auto& scatter = *node.as<graph::Scatter>();
    const Dim& size = node.shape()[scatter.axis];
    const int64_t stride = contiguous_strides(node.shape())[scatter.axis];
    const auto operand = [&](size_t i) {
      return [&, i](const Index& index, const Point& point) {
        const Expr number = schedule::inner_position(stage_, value, point.axes);
        return schedule::scattered_accesses(graph_, value.value, index, number)[i];
      };
    };
    const bool atomic = context_.kernel.is_atomic();
    nest_.nest(atomic ? Ints{} : stage_.axes, outer, false, [&](const Points& points) {
      const std::vector<Var> indices = at_points(points, operand(0));
      const std::vector<Var> updates = at_points(points, operand(1));
      for (size_t i = 0; i < points.size(); ++i) {
        const IndexEmitter::Position along = index_.checked_position(indices[i], size);
        const Expr position =
            schedule::value_position(stage_, value, points[i].axes) + along.position * stride;
        memory_.update(value.value, {position, updates[i], points[i].mask}, along.valid,
                       {graph::reduce_op(scatter.mode), atomic});
      }
    });
  }

 private:
  // What one access of every point gives; `pick` chooses it among those at a point's index.
  template <class Pick>
  std::vector<Var> at_points(const Points& points, Pick&& pick) {
    std::vector<Access> wanted;
    for (const Point& point : points) {
      wanted.push_back(pick(context_.index_of(stage_, stage_.values[0], point.axes), point));
      wanted.back().mask.require(point.mask);
    }
    return values_.evaluate(wanted);
  }

  const Stage& stage_;
};

}  // namespace

void lower_scan_stage(KernelContext& context, const Stage& stage, const Points& outer) {
  SequentialStage(context, stage).scan(outer);
}

void lower_scatter_stage(KernelContext& context, const Stage& stage, const Points& outer) {
  SequentialStage(context, stage).scatter(outer);
}

}  // namespace rune::lower
