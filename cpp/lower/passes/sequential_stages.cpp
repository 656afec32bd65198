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
    const bool by_threads = nest_.is_thread(stage_.axes.front());
    std::vector<Var> sums;
    for (const Var v : initial) sums.push_back(builder_.acc(builder_.splat(v, lanes)));
    nest_.nest(stage_.axes, outer, false, [&](const Points& points) {
      std::vector<Var> elements = at_points(points, operand(0));
      if (by_threads)
        for (size_t i = 0; i < points.size(); ++i)
          elements[i] = scan_threads(op, elements[i], points[i].mask, none);
      for (size_t i = 0; i < points.size(); ++i) {
        const Var acc = sums[i % outer.size()];
        const Var sum = builder_.alu_here(alu_of(op), {acc, builder_.splat(elements[i], lanes)});
        builder_.assign(acc, by_threads
                                 ? builder_.alu_here(alu_of(op), {acc, of_last_thread(elements[i])})
                                 : sum);
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
  // The scan of x along the threads of the SIMD-group, where the mask holds: each takes in what
  // lies 1, 2, 4, ... threads before it.
  Var scan_threads(ReduceOp op, Var x, const sym::Mask& mask, Var none) {
    const Var valid = index_.emit(mask);
    if (valid.valid()) x = builder_.alu_here(AluOp::Where, {valid, x, none});
    const int64_t width = nest_.threads();
    const Expr thread = nest_.thread_number(width);
    for (int64_t step = 1; step < width; step *= 2) {
      sym::Mask has_before;
      has_before.require_nonnegative(thread - step);
      const Var from = builder_.alu(AluOp::Max, {index_.emit(thread - step), index_.constant(0)});
      const Var before = builder_.simd_shuffle(width, x, from);
      const Var sum = builder_.alu_here(alu_of(op), {before, x});
      x = builder_.alu_here(AluOp::Where, {index_.emit(has_before), sum, x});
    }
    return x;
  }
  Var of_last_thread(Var x) {
    return builder_.simd_shuffle(nest_.threads(), x, index_.constant(nest_.threads() - 1));
  }

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
