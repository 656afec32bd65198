#include "lower/passes/reduce_stage.h"

#include <algorithm>

#include "alu/eval.h"
#include "base/math.h"
#include "lower/passes/combine.h"

namespace rune::lower {

using schedule::Stage;
using schedule::StageValue;
using sym::Expr;
using sym::Mask;

namespace {

// The accumulators of one reduction at one outer point.
struct Accumulation {
  const StageValue* value;
  const Point* point;
  std::vector<Var> slots;
};

class ReduceStage : Lowering {
 public:
  ReduceStage(KernelContext& context, const Stage& stage) : Lowering(context), stage_(stage) {}

  bool run(const Points& outer) {
    Ints loops = nest_.order_of(stage_);
    std::erase_if(loops, [&](int64_t axis) { return is_of_groups(axis); });
    int64_t slots = 1;
    bool lanes_inside = false;
    for (const int64_t axis : loops) {
      if (!nest_.is_thread(axis)) slots = std::max(slots, nest_.step(axis) / nest_.lanes_of(axis));
      lanes_inside |= nest_.is_vector(axis);
    }
    const bool lanes_outside = std::any_of(context_.outer.begin(), context_.outer.end(),
                                           [&](int64_t axis) { return nest_.is_vector(axis); });
    const int lanes = lanes_inside || lanes_outside ? index_.lanes() : 1;
    std::vector<Accumulation> sums = open_accumulators(outer, slots, lanes);
    const bool in_loop = context_.carried && context_.carried->of_loop;
    if (in_loop) load(sums);
    reduce_nest(loops, sums);
    if (in_loop) {
      const Var is_last = builder_.alu(AluOp::Cmpeq, {number_of_tile(), last_tile()});
      builder_.open_if(negated(is_last));
      store(sums);
      builder_.close_if();
      builder_.open_if(is_last);
    } else if (context_.carried && !context_.carried->ends) {
      store(sums);
      return false;
    }
    if (stage_.keeps)
      memory_.hold(stage_.keeps->value, context_.kept_index(*stage_.keeps, outer.front().axes));
    const bool in_threads = !loops.empty() && nest_.is_thread(loops.back());
    for (const Accumulation& sum : sums) {
      const Var result =
          combine(context_, {sum.slots, lanes_inside, in_threads}, reduce_op(sum.value->value));
      // An Acc inside of the If keeps values computed from it there.
      values_.define(sum.value->value,
                     schedule::value_position(stage_, *sum.value, sum.point->axes),
                     in_loop ? builder_.acc(result) : result);
    }
    return in_loop;
  }

 private:
  // Whether the axis is divided among workgroups, so that an outer point has one index along it.
  bool is_of_groups(int64_t axis) const {
    return contains(context_.kernel.iter.mapping.block, axis);
  }

  ReduceOp reduce_op(Value v) const { return schedule::reduction_op(graph_[v]); }

  Var identity_of(Value v, int lanes) {
    return builder_.constant(identity(reduce_op(v), graph_[v].dtype()), lanes);
  }

  Var initial(const StageValue& value, const Point& point, int lanes) {
    const auto& tile = context_.carried;
    if (!tile || tile->begins || tile->of_loop) return identity_of(value.value, lanes);
    return carried(value, point);
  }

  // The sum of the earlier tiles.
  Var carried(const StageValue& value, const Point& point) {
    return memory_.load_stored(context_.kernel.outputs.front(),
                               schedule::value_position(stage_, value, point.axes),
                               carried_mask(point));
  }

  // Whether the output carries the point's sum. In a mirrored result only the points with row >=
  // column do, because the others are written when their mirror images are complete.
  Mask carried_mask(const Point& point) const {
    Mask mask = point.mask;
    if (const schedule::Mirror* mirror = context_.kernel.mirror())
      mask.require_nonnegative(point.axes[mirror->rows] - point.axes[mirror->columns]);
    return mask;
  }

  Var negated(Var condition) {
    return builder_.alu(AluOp::Cmpeq, {condition, builder_.constant(Scalar::of(DType::Bool, 0))});
  }

  Var number_of_tile() { return index_.emit(context_.carried->of_loop->number); }
  Var last_tile() {
    const auto& [axis, first, size, begins, ends, of_loop] = *context_.carried;
    return index_.constant(ceil_div(nest_.extent(axis), size) - 1);
  }

  // Loads the sums of the earlier tiles, if the loop's tile is not the first one.
  void load(const std::vector<Accumulation>& sums) {
    builder_.open_if(negated(builder_.alu(AluOp::Cmpeq, {number_of_tile(), index_.constant(0)})));
    for (const Accumulation& sum : sums)
      builder_.assign(sum.slots.front(), carried(*sum.value, *sum.point));
    builder_.close_if();
  }

  // Stores the sums in the kernel's output, which carries them to the next tile.
  void store(const std::vector<Accumulation>& sums) {
    for (const Accumulation& sum : sums)
      memory_.store(context_.kernel.outputs.front(),
                    {schedule::value_position(stage_, *sum.value, sum.point->axes),
                     sum.slots.front(), carried_mask(*sum.point)},
                    false);
  }

  std::vector<Accumulation> open_accumulators(const Points& outer, int64_t slots, int lanes) {
    std::vector<Accumulation> result;
    for (const StageValue& value : stage_.values)
      for (const Point& point : outer) {
        Accumulation accumulation{&value, &point, {}};
        for (int64_t s = 0; s < slots; ++s)
          accumulation.slots.push_back(builder_.acc(initial(value, point, lanes)));
        result.push_back(std::move(accumulation));
      }
    return result;
  }

  // Emits the loops of the reduction. Long sums restart, so that no accumulator adds too many terms
  // one by one.
  void reduce_nest(const Ints& loops, std::vector<Accumulation>& sums) {
    if (const auto& part = context_.carried) {
      if (part->of_loop)
        return nest_.tiled_axis(part->axis, *part->of_loop, {nest_.origin()}, true,
                                [&](const Points& points) { accumulate(sums, points); });
      return nest_.unrolled(part->size, [&](const Expr& i) {
        const Expr at = index_.emit_and_bind(part->first + i, nest_.extent(part->axis));
        accumulate(sums, nest_.extend({nest_.origin()}, part->axis, at, 1, true));
      });
    }
    const int64_t last = loops.empty() ? -1 : loops.back();
    const bool blocked =
        last >= 0 && !nest_.is_thread(last) && context_.kernel.iter.tiles[last].size() > 1;
    if (!blocked) return accumulate_nest(loops, sums);
    const int64_t size = nest_.extent(last), width = nest_.step(last);
    const int64_t tile = context_.kernel.iter.tiles[last].front();
    const Ints around(loops.begin(), loops.end() - 1);
    nest_.nest(around, {nest_.origin()}, true, [&](const Points& points) {
      const auto block = [&](const std::function<void(std::vector<Accumulation>&)>& run) {
        std::vector<Accumulation> partial = sums;
        for (Accumulation& p : partial)
          for (Var& slot : p.slots)
            slot = builder_.acc(identity_of(p.value->value, builder_.type(slot).lanes));
        run(partial);
        for (size_t i = 0; i < sums.size(); ++i)
          for (size_t s = 0; s < sums[i].slots.size(); ++s)
            combine_into(sums[i].slots[s], partial[i].slots[s], reduce_op(sums[i].value->value));
      };
      if (nest_.is_symbolic(last)) {
        const Expr tiles = floordiv(nest_.size_of_axis(last) + (tile - 1), tile);
        const Var i = builder_.open_range(index_.emit(tiles), true);
        const Tile current{index_.bind(i, {0, (size - 1) / tile}), tile};
        block([&](std::vector<Accumulation>& partial) {
          nest_.tiled_axis(last, current, points, true,
                           [&](const Points& inner) { accumulate(partial, inner); });
        });
        return builder_.close_range();
      }
      const auto steps = [&](std::vector<Accumulation>& partial, const Expr& first, int64_t count) {
        nest_.loop(count, [&](const Expr& i) {
          accumulate(partial, nest_.extend(points, last, (first + i) * width, width, true));
        });
      };
      const int64_t full = size / tile, leftover = size % tile, rest = leftover % width;
      nest_.loop(full, [&](const Expr& number) {
        block([&](std::vector<Accumulation>& partial) {
          steps(partial, number * (tile / width), tile / width);
        });
      });
      if (!leftover) return;
      block([&](std::vector<Accumulation>& partial) {
        if (leftover >= width) steps(partial, Expr(full * (tile / width)), leftover / width);
        if (rest) accumulate(partial, nest_.extend(points, last, Expr(size - rest), rest, true));
      });
    });
  }

  void accumulate_nest(const Ints& loops, std::vector<Accumulation>& sums) {
    nest_.nest(loops, {nest_.origin()}, true,
               [&](const Points& points) { accumulate(sums, points); });
  }

  void combine_into(Var acc, Var value, ReduceOp op) {
    builder_.assign(acc, builder_.alu_here(alu_of(op), {acc, value}));
  }

  // Emits one iteration: each outer point adds the `inner` points to its accumulators. A
  // contraction's operands are loaded just before the register tile uses them, so that few are live
  // at once.
  void accumulate(const std::vector<Accumulation>& sums, const Points& inner) {
    struct Term {
      Var acc;
      Value value;
      Mask mask;
    };
    std::vector<Term> terms;
    std::vector<Access> wanted;
    const auto fold = [&] {
      const std::vector<Var> operands = values_.evaluate(wanted);
      size_t next = 0;
      for (const Term& term : terms)
        next += add_term(term.acc, term.value, term.mask, &operands[next]);
      terms.clear();
      wanted.clear();
    };
    for (const Accumulation& sum : sums)
      for (const Point& point : inner) {
        std::vector<Expr> axes = sum.point->axes;
        for (const int64_t axis : stage_.axes)
          if (!is_of_groups(axis)) axes[axis] = point.axes[axis];
        Mask mask = sum.point->mask;
        mask.require(point.mask);
        const Value v = sum.value->value;
        const Index reduced = schedule::unflatten_index(
            schedule::inner_position(stage_, *sum.value, axes), schedule::reduced_shape(graph_, v));
        for (Access& access : schedule::reduction_accesses(
                 graph_, v, context_.index_of(stage_, *sum.value, axes), reduced)) {
          access.mask.require(mask);
          wanted.push_back(std::move(access));
        }
        terms.push_back({sum.slots[point.slot], v, point.mask});
        if (graph_[v].kind() == graph::NodeKind::Contract) fold();
      }
    fold();
    if (stage_.keeps) keep_operands(*sums.front().point, inner);
  }

  // Keeps the operands that the stage has just reduced at these points of the row at `outer`.
  void keep_operands(const Point& outer, const Points& inner) {
    Points points = inner;
    for (Point& point : points) {
      for (int64_t i = 0; i < static_cast<int64_t>(point.axes.size()); ++i)
        if (!contains(stage_.axes, i)) point.axes[i] = outer.axes[i];
      point.mask.require(outer.mask);
    }
    context_.keep_points(stage_, context_.kept_index(*stage_.keeps, outer.axes), points);
  }

  // Adds a point's operands to its accumulator. Returns the number of operands.
  size_t add_term(Var acc, Value v, const Mask& mask, const Var* operands) {
    const Type type = builder_.type(acc);
    const Var valid = index_.emit(mask);
    const auto operand = [&](Var x, Scalar otherwise) {
      if (valid.valid()) x = index_.where(valid, x, builder_.constant(otherwise));
      return builder_.splat(x, type.lanes);
    };
    if (const auto* reduce = graph_[v].as<graph::Reduce_Axis>()) {
      const Var x = operand(operands[0], identity(reduce->op, type.dtype));
      builder_.assign(acc, builder_.alu_here(alu_of(reduce->op), {acc, x}));
      return 1;
    }
    const Scalar zero = Scalar::zero(type.dtype);
    const Var a = operand(operands[0], zero), b = operand(operands[1], zero);
    builder_.assign(acc, builder_.alu_here(AluOp::Mulacc, {a, b, acc}));
    return 2;
  }

  const Stage& stage_;
};

}  // namespace

bool lower_reduce_stage(KernelContext& context, const Stage& stage, const Points& outer) {
  return ReduceStage(context, stage).run(outer);
}

}  // namespace rune::lower
