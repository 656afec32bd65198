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
    for (const Var v : initial)
      sums.push_back(builder_.acc(builder_.splat(v, by_threads ? 1 : lanes)));
    nest_.nest(stage_.axes, outer, false, [&](const Points& points) {
      const auto combine = [&](Var a, Var b) { return builder_.alu_here(alu_of(op), {a, b}); };
      std::vector<Var> elements = at_points(points, operand(0));
      std::vector<Scanned> parts;
      if (by_threads)
        for (size_t i = 0; i < points.size(); ++i)
          parts.push_back(scan_threads(op, elements[i], points[i].mask, none));
      for (size_t i = 0; i < points.size(); ++i) {
        const Var acc = sums[i % outer.size()];
        Var before = acc, element = builder_.splat(elements[i], lanes);
        if (by_threads) element = parts[i].scan;
        if (by_threads && lanes > 1) before = builder_.splat(combine(acc, parts[i].before), lanes);
        const Var sum = combine(before, element);
        builder_.assign(acc, by_threads ? combine(acc, parts[i].total) : sum);
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
  // A scan along the threads of a SIMD-group: of single elements, or of a vector of each thread. In
  // the latter case, `scan` does not include the earlier threads, which `before` does.
  struct Scanned {
    Var scan, before, total;
  };

  // Scans the elements of x for which the mask holds.
  Scanned scan_threads(ReduceOp op, Var x, const sym::Mask& mask, Var none) {
    const Var valid = index_.emit(mask);
    const int lanes = builder_.type(x).lanes;
    if (valid.valid())
      x = builder_.alu_here(AluOp::Where,
                            {builder_.splat(valid, lanes), x, builder_.splat(none, lanes)});
    if (lanes == 1) {
      const Var scan = scan_elements(op, x);
      return {scan, {}, of_last_thread(scan)};
    }
    std::vector<Var> within{builder_.shuffle_here(x, {0})};
    Ints order{0};
    for (int64_t i = 1; i < lanes; ++i) {
      const Var next = builder_.shuffle_here(x, {i});
      within.push_back(builder_.alu_here(alu_of(op), {within.back(), next}));
      order.push_back(i);
    }
    const Var through = scan_elements(op, within.back());
    const Expr thread = nest_.thread_number(nest_.threads());
    sym::Mask has_before;
    has_before.require_nonnegative(thread - 1);
    const Var before = builder_.alu_here(
        AluOp::Where, {index_.emit(has_before), of_thread_before(through, thread, 1), none});
    return {builder_.shuffle(within, order), before, of_last_thread(through)};
  }

  // Each thread adds the value of the thread 1, 2, 4, ... before it.
  Var scan_elements(ReduceOp op, Var x) {
    const Expr thread = nest_.thread_number(nest_.threads());
    for (int64_t step = 1; step < nest_.threads(); step *= 2) {
      sym::Mask has_before;
      has_before.require_nonnegative(thread - step);
      const Var sum = builder_.alu_here(alu_of(op), {of_thread_before(x, thread, step), x});
      x = builder_.alu_here(AluOp::Where, {index_.emit(has_before), sum, x});
    }
    return x;
  }
  // The value of the thread `step` before, or of the first thread if there is none.
  Var of_thread_before(Var x, const Expr& thread, int64_t step) {
    const Var from = builder_.alu(AluOp::Max, {index_.emit(thread - step), index_.constant(0)});
    return builder_.simd_shuffle(nest_.threads(), x, from);
  }
  Var of_last_thread(Var x) {
    return builder_.simd_shuffle(nest_.threads(), x, index_.constant(nest_.threads() - 1));
  }

  // The values of one access at every point. `pick` chooses it from the accesses at a point's
  // index.
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
