#include "lower/passes/lower_kernel.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "alu/eval.h"
#include "base/error.h"
#include "lower/passes/value_emitter.h"

namespace rune::lower {

using schedule::Index;
using schedule::Stage;
using schedule::StageKind;
using schedule::StageValue;
using sym::Expr;
using sym::Mask;

std::vector<Value> kernel_arguments(const schedule::Kernel& kernel) {
  std::vector<Value> arguments;
  for (const auto& buffer : kernel.inputs) arguments.push_back(buffer.buf_var);
  for (const auto& buffer : kernel.outputs)
    if (std::find(arguments.begin(), arguments.end(), buffer.buf_var) == arguments.end())
      arguments.push_back(buffer.buf_var);
  return arguments;
}

namespace {

bool contains(const Ints& list, int64_t item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

// A point of the iteration space that the innermost loops compute: an expression for each axis that
// is fixed, and where the point exists at all.
struct Point {
  std::vector<Expr> axes;
  Mask mask;
  int64_t slot = 0;  // which of a reduction's accumulators it goes to
};
using Points = std::vector<Point>;

// Tile `number` of those of `size` points along an axis.
struct Tile {
  Expr number;
  int64_t size = 1;
};
using Body = std::function<void(const Points&)>;

// Accumulators of one reduction at one outer point.
struct Accumulation {
  const StageValue* value;
  const Point* point;
  std::vector<Var> slots;
};

DType index_dtype(const schedule::Schedule& schedule, const schedule::Kernel& kernel,
                  const Capabilities& caps) {
  if (caps.model == ExecutionModel::Cores) return DType::Int64;
  constexpr int64_t kNarrow = (int64_t{1} << 31) - 1;
  for (const Value v : kernel_arguments(kernel))
    if (num_elements(schedule.graph[v].shape()) > kNarrow) return DType::Int64;
  return DType::Int32;
}

class KernelLowerer {
 public:
  KernelLowerer(const schedule::Schedule& schedule, const schedule::Kernel& kernel,
                const Capabilities& caps)
      : graph_(schedule.graph),
        kernel_(kernel),
        caps_(caps),
        iter_(kernel.iter),
        mapping_(kernel.iter.mapping),
        index_dtype_(index_dtype(schedule, kernel, caps)),
        values_(builder_, graph_, kernel, index_dtype_, static_cast<int>(kernel.lanes())),
        outer_(schedule::outer_axes(kernel)),
        threads_(kernel.context.local_dims[0]),
        tiles_(kernel.iter.axes.size()) {
    for (const auto& hint : kernel.hints)
      if (hint.kind == schedule::HintKind::Nontemporal) nontemporal_.insert(hint.var->id);
  }

  Kernel run() {
    Point start{std::vector<Expr>(iter_.axes.size()), {}, 0};
    const bool threads_over_outer =
        !mapping_.thread.empty() && contains(outer_, mapping_.thread[0]);
    if (threads_over_outer) {
      deal_to_threads(start);
    } else {
      const std::vector<Expr> groups = block_tiles();
      for (const int64_t axis : mapping_.serial)
        if (contains(outer_, axis)) loops_.push_back(axis);
      // Block axes of one point a group have no loop.
      Ints fixed;
      for (size_t i = 0; i < mapping_.block.size(); ++i) {
        const int64_t axis = mapping_.block[i];
        tiles_[axis] = {groups[i], iter_.tiles[axis].front()};
        if (contains(loops_, axis)) continue;
        fixed.push_back(axis);
        start.axes[axis] = groups[i];
      }
      const bool within = open_within_sizes(fixed, start);
      outer_loops(0, {start});
      if (within) builder_.close_if();
    }
    const auto& context = kernel_.context;
    return builder_.finish(kernel_.kernel_name,
                           {context.global_dims[0], context.global_dims[1], context.global_dims[2]},
                           {context.local_dims[0], context.local_dims[1], context.local_dims[2]});
  }

 private:
  int64_t extent(int64_t axis) const { return iter_.axes[axis].extent(); }
  int64_t step(int64_t axis) const { return iter_.tiles[axis].back(); }
  int64_t lanes_of(int64_t axis) const {
    return contains(mapping_.vec, axis) ? values_.lanes() : 1;
  }

  // How many points an axis has, and whether that is known only when the program runs.
  bool is_symbolic(int64_t axis) const { return iter_.axes[axis].sym.has_value(); }
  Expr size_of_axis(int64_t axis) {
    return is_symbolic(axis) ? values_.symbol(*iter_.axes[axis].sym) : Expr(extent(axis));
  }

  // An If around what follows where a point of these axes may lie beyond their symbolic sizes;
  // returns whether there is one.
  bool open_within_sizes(const Ints& axes, const Point& point) {
    Mask inside;
    for (const int64_t axis : axes)
      if (is_symbolic(axis)) inside.require_nonnegative(size_of_axis(axis) - 1 - point.axes[axis]);
    if (inside.is_true()) return false;
    builder_.open_if(values_.emit(inside));
    return true;
  }

  // Each thread of the grid computes one point of the linearised outer axes.
  void deal_to_threads(const Point& start) {
    Shape sizes;
    int64_t total = 1;
    for (const int64_t axis : mapping_.block) sizes.push_back(extent(axis)), total *= extent(axis);
    const int64_t launched = kernel_.context.global_dims[0] * threads_;
    const Var number = builder_.special(SpecialKind::Global_task_idx, 0, launched, index_dtype_);
    const bool guarded = launched > total;
    if (guarded)
      builder_.open_if(builder_.alu(AluOp::Cmplt, {number, values_.index_constant(total)}));
    Point point = start;
    const std::vector<Expr> index =
        sym::unflatten_index(values_.bind(number, {0, total - 1}), sizes);
    for (size_t i = 0; i < mapping_.block.size(); ++i) point.axes[mapping_.block[i]] = index[i];
    const bool within = open_within_sizes(mapping_.block, point);
    run_stages({point});
    if (within) builder_.close_if();
    if (guarded) builder_.close_if();
  }

  // Which tile of each block axis this workgroup has.
  std::vector<Expr> block_tiles() {
    Shape counts;
    int64_t total = 1;
    for (const int64_t axis : mapping_.block) {
      const int64_t tile = iter_.tiles[axis].front();
      counts.push_back((extent(axis) + tile - 1) / tile);
      total *= counts.back();
    }
    if (counts.empty()) return {};
    const Var group = builder_.special(SpecialKind::Workgroup_idx, 0, total, index_dtype_);
    return sym::unflatten_index(values_.bind(group, {0, total - 1}), counts);
  }

  // Points that one iteration computes along an axis from `base` on: `count` elements, in vectors
  // if the axis carries the lanes. Vectors side by side stay neighbours among the points.
  Points extend(const Points& points, int64_t axis, const Expr& base, int64_t count,
                bool into_slots) {
    const int64_t lanes = lanes_of(axis), copies = (count + lanes - 1) / lanes;
    const auto copy = [&](const Point& point, int64_t u) {
      Point next = point;
      Expr at = base + Expr(u * lanes);
      const int64_t used = std::min(lanes, count - u * lanes);
      if (lanes > 1) at = at + values_.lane(used);
      if (used < lanes) next.mask.require_between(values_.lane(lanes), 0, used);
      next.axes[axis] = at;
      if (into_slots) next.slot = u;
      return next;
    };
    Points result;
    if (lanes > 1) {
      for (const Point& point : points)
        for (int64_t u = 0; u < copies; ++u) result.push_back(copy(point, u));
    } else {
      for (int64_t u = 0; u < copies; ++u)
        for (const Point& point : points) result.push_back(copy(point, u));
    }
    return result;
  }

  // Runs the body for the points of an axis of symbolic size from `from` to `end`: full steps in a
  // loop, the rest in a loop by vectors under a mask.
  void symbolic_range(int64_t axis, const Expr& from, const Expr& end, const Points& points,
                      bool into_slots, const Body& body) {
    const int64_t width = step(axis), lanes = lanes_of(axis), last = extent(axis) - 1;
    const Var steps = values_.emit(floordiv(end - from, width));
    const Var i = builder_.open_range(steps);
    const Var at = values_.emit(from + values_.bind(i, {0, last / width}) * width);
    body(extend(points, axis, values_.bind(at, {0, std::max<int64_t>(last + 1 - width, 0)}), width,
                into_slots));
    builder_.close_range();
    if (width == 1) return;
    const Var none = values_.index_constant(0);
    const Expr done = values_.bind(builder_.alu(AluOp::Max, {steps, none}), {0, last / width});
    const Expr start = from + done * width;
    const Var j = builder_.open_range(values_.emit(floordiv(end - start + (lanes - 1), lanes)));
    const Var position = values_.emit(start + values_.bind(j, {0, width / lanes}) * lanes);
    Points rest = extend(points, axis, values_.bind(position, {0, last}), lanes, into_slots);
    for (Point& point : rest)
      if (lanes > 1) point.mask.require_nonnegative(end - 1 - point.axes[axis]);
    body(rest);
    builder_.close_range();
  }

  // Runs the body for all points of an axis: full steps in a loop, the rest once.
  void full_axis(int64_t axis, const Points& points, bool into_slots, const Body& body) {
    if (is_symbolic(axis))
      return symbolic_range(axis, Expr(0), size_of_axis(axis), points, into_slots, body);
    const int64_t size = extent(axis), width = step(axis), rest = size % width;
    if (size >= width) {
      const auto iteration = [&](const Expr& i) {
        body(extend(points, axis, i * width, width, into_slots));
      };
      loop(size / width, iteration);
    }
    if (rest) body(extend(points, axis, Expr(size - rest), rest, into_slots));
  }

  // A loop of known length; none for one iteration.
  void loop(int64_t count, const std::function<void(const Expr&)>& body) {
    if (count == 1) return body(Expr(0));
    const Var i = builder_.open_range(values_.index_constant(count));
    body(values_.bind(i, {0, count - 1}));
    builder_.close_range();
  }

  // The loops over outer axes, outermost first, with the stages that run between them, then the
  // other stages.
  void outer_loops(size_t depth, const Points& points) {
    for (const Stage& stage : kernel_.stages)
      if (stage.depth == static_cast<int64_t>(depth)) keep_tile(stage, points);
    if (depth == loops_.size()) return run_stages(points);
    const int64_t axis = loops_[depth];
    const Body body = [&](const Points& extended) { outer_loops(depth + 1, extended); };
    if (!is_innermost(depth)) return tile_loop(depth, [&] { body(points); });
    axis_loop(axis, points, body);
  }

  // The innermost loop over an outer axis, within its current tile.
  void axis_loop(int64_t axis, const Points& points, const Body& body) {
    if (!tiles_[axis]) return full_axis(axis, points, false, body);
    tiled_axis(axis, *tiles_[axis], points, body);
  }

  bool is_innermost(size_t depth) const {
    return std::find(loops_.begin() + depth + 1, loops_.end(), loops_[depth]) == loops_.end();
  }

  // The loop over the tiles of the next size within an axis's current tile.
  void tile_loop(size_t depth, const std::function<void()>& body) {
    const int64_t axis = loops_[depth], size = extent(axis);
    const auto outer_loops = std::count(loops_.begin(), loops_.begin() + depth, axis);
    const int64_t inner = iter_.tiles[axis][outer_loops + contains(mapping_.block, axis)];
    const int64_t total = (size + inner - 1) / inner;
    const std::optional<Tile> outer = tiles_[axis];
    const int64_t count = outer ? outer->size / inner : total;
    const Expr first = outer ? outer->number * count : Expr(0);
    Var bound = values_.index_constant(count);
    if (total % count != 0)
      bound = builder_.alu(AluOp::Min, {bound, values_.emit(Expr(total) - first)});
    const Var i = builder_.open_range(bound);
    const Expr number = values_.emit_and_bind(first + values_.bind(i, {0, count - 1}), total);
    tiles_[axis] = {number, inner};
    body();
    tiles_[axis] = outer;
    builder_.close_range();
  }

  // The part of an axis in a tile, the last one possibly shorter.
  void tiled_axis(int64_t axis, const Tile& current, const Points& points, const Body& body) {
    const int64_t size = extent(axis), tile = current.size, width = step(axis);
    if (is_symbolic(axis)) {
      const Expr from = current.number * tile;
      const Var end = builder_.alu(
          AluOp::Min, {values_.emit(from + Expr(tile)), values_.emit(size_of_axis(axis))});
      return symbolic_range(axis, from, values_.bind(end, {0, size}), points, false, body);
    }
    const int64_t steps = tile / width, total_steps = size / width, rest = size % width;
    const Expr first_step = current.number * steps;
    Var count = values_.index_constant(steps);
    if (size % tile != 0)
      count = builder_.alu(AluOp::Min, {count, values_.emit(Expr(total_steps) - first_step)});
    if (total_steps > 0) {
      const Var i = builder_.open_range(count);
      const Expr number = first_step + values_.bind(i, {0, steps - 1});
      const Expr at = values_.emit_and_bind(number, total_steps);
      body(extend(points, axis, at * width, width, false));
      builder_.close_range();
    }
    if (!rest) return;
    // Only the last tile has a rest.
    const int64_t tiles = (size + tile - 1) / tile;
    if (tiles > 1)
      builder_.open_if(builder_.alu(
          AluOp::Cmpeq, {values_.emit(current.number), values_.index_constant(tiles - 1)}));
    body(extend(points, axis, Expr(size - rest), rest, false));
    if (tiles > 1) builder_.close_if();
  }

  // Fills scratch memory with a value's elements for the current tiles of the axes that no loop has
  // brought down to a point yet.
  void keep_tile(const Stage& stage, const Points& points) {
    const StageValue& kept = *stage.keeps;
    Ints tiled;
    Point start = points.front();
    for (const int64_t axis : outer_) {
      const auto depth = std::min<int64_t>(*stage.depth, static_cast<int64_t>(loops_.size()));
      const bool is_point = !contains(Ints(loops_.begin() + depth, loops_.end()), axis);
      if (is_point || kept.strides[axis] == 0) continue;
      tiled.push_back(axis);
      start.axes[axis] = tiles_[axis] ? tiles_[axis]->number * tiles_[axis]->size : Expr(0);
    }
    const Index origin = kept_index(kept, start.axes);
    tile_nest(tiled, 0, points, [&](const Points& outer) {
      stage_nest(stage_loops(stage), 0, outer, false,
                 [&](const Points& all) { keep_points(stage, origin, all); });
    });
    values_.hold(kept.value, origin);
  }

  void tile_nest(const Ints& axes, size_t depth, const Points& points, const Body& body) {
    if (depth == axes.size()) return body(points);
    axis_loop(axes[depth], points,
              [&](const Points& extended) { tile_nest(axes, depth + 1, extended, body); });
  }

  Index index_of(const Stage& stage, const StageValue& value, const std::vector<Expr>& axes) const {
    return sym::unflatten_index(schedule::value_position(stage, value, axes),
                                graph_[value.value].shape());
  }

  // Where a kept value's element at a point is, over all axes, those that the stage reduces too.
  Index kept_index(const StageValue& kept, const std::vector<Expr>& axes) const {
    Expr position;
    for (size_t i = 0; i < axes.size(); ++i) position = position + axes[i] * kept.strides[i];
    return sym::unflatten_index(position, graph_[kept.value].shape());
  }

  void keep_points(const Stage& stage, const Index& origin, const Points& points) {
    const Value v = stage.keeps->value;
    std::vector<Access> wanted;
    for (const Point& point : points)
      wanted.push_back({v, kept_index(*stage.keeps, point.axes), point.mask});
    values_.take(stage.takes.value_or(std::vector<Value>{}));
    const std::vector<Var> results = values_.evaluate(wanted);
    for (size_t i = 0; i < wanted.size(); ++i)
      values_.keep(v, origin, wanted[i].index, results[i], wanted[i].mask);
  }

  void run_stages(const Points& points) {
    for (const Stage& stage : kernel_.stages) {
      if (stage.depth) continue;
      values_.take(stage.takes.value_or(std::vector<Value>{}));
      switch (stage.kind) {
        case StageKind::Reduce: reduce_stage(stage, points); break;
        case StageKind::Map: map_stage(stage, points); break;
        case StageKind::Scan: scan_stage(stage, points); break;
        case StageKind::Scatter: scatter_stage(stage, points); break;
      }
    }
  }

  // A stage's axes, the one with the lanes or threads last.
  Ints stage_loops(const Stage& stage) const {
    Ints loops = stage.axes;
    std::stable_partition(loops.begin(), loops.end(), [&](int64_t axis) {
      return !contains(mapping_.vec, axis) && !contains(mapping_.thread, axis);
    });
    return loops;
  }

  void stage_nest(const Ints& loops, size_t depth, const Points& points, bool into_slots,
                  const Body& body) {
    if (depth == loops.size()) return body(points);
    const int64_t axis = loops[depth];
    const Body inner = [&](const Points& extended) {
      stage_nest(loops, depth + 1, extended, into_slots, body);
    };
    if (contains(mapping_.thread, axis)) return thread_axis(axis, points, inner);
    full_axis(axis, points, into_slots, inner);
  }

  // The thread's number in its group, of which only the first `used` matter.
  Expr thread_number(int64_t used) {
    const auto known = thread_.find(used);
    if (known != thread_.end()) return known->second;
    const Var number = builder_.special(SpecialKind::Local_thread_idx, 0, threads_, index_dtype_);
    return thread_[used] = values_.bind(number, {0, used - 1});
  }

  // An axis dealt to the threads of the group, round robin.
  void thread_axis(int64_t axis, const Points& points, const Body& body) {
    const int64_t size = extent(axis), rest = size % threads_;
    const Expr thread = thread_number(threads_);
    const auto at = [&](const Expr& position) {
      Points extended = points;
      for (Point& point : extended) point.axes[axis] = position;
      return extended;
    };
    if (is_symbolic(axis)) {
      const Expr end = size_of_axis(axis);
      const Var i = builder_.open_range(values_.emit(floordiv(end + (threads_ - 1), threads_)));
      const Var position =
          values_.emit(values_.bind(i, {0, (size - 1) / threads_}) * threads_ + thread);
      Points inside = at(values_.bind(position, {0, size - 1}));
      for (Point& point : inside) point.mask.require_nonnegative(end - 1 - point.axes[axis]);
      body(inside);
      builder_.close_range();
      return;
    }
    if (size >= threads_)
      loop(size / threads_, [&](const Expr& i) { body(at(i * threads_ + thread)); });
    if (!rest) return;
    Points last = at(Expr(size - rest) + thread_number(rest));
    for (Point& point : last) point.mask.require_between(thread, 0, rest);
    body(last);
  }

  // Map stages.

  void map_stage(const Stage& stage, const Points& outer) {
    stage_nest(stage_loops(stage), 0, outer, false, [&](const Points& points) {
      std::vector<Access> wanted;
      for (const StageValue& value : stage.values)
        for (const Point& point : points) {
          const Expr position = schedule::value_position(stage, value, point.axes);
          wanted.push_back({value.value,
                            sym::unflatten_index(position, graph_[value.value].shape()),
                            point.mask});
        }
      const std::vector<Var> results = values_.evaluate(wanted);
      size_t i = 0;
      for (const StageValue& value : stage.values)
        for (const Point& point : points) {
          Mask mask = point.mask;
          if (stage.axes.empty() && kernel_.reduce && threads_ > 1) require_first_thread(mask);
          values_.store(value.value, schedule::value_position(stage, value, point.axes),
                        results[i++], mask, nontemporal_.count(value.value.id) > 0);
        }
    });
  }

  // Where all threads of a group have one result, one stores it.
  void require_first_thread(Mask& mask) {
    if (kernel_.reduce->inter_thread == schedule::InterThread::SharedTree)
      mask.require_between(thread_number(threads_), 0, 1);
  }

  // Scan and Scatter stages: one loop, in order.

  Index index_at(const Stage& stage, const StageValue& value, const Point& point) const {
    return sym::unflatten_index(schedule::value_position(stage, value, point.axes),
                                graph_[value.value].shape());
  }

  // What one access of every point gives; `pick` chooses it among those at a point's index.
  template <class Pick>
  std::vector<Var> at_points(const Stage& stage, const Points& points, Pick&& pick) {
    std::vector<Access> wanted;
    for (const Point& point : points) {
      wanted.push_back(pick(index_at(stage, stage.values[0], point), point));
      wanted.back().mask.require(point.mask);
    }
    return values_.evaluate(wanted);
  }

  void scan_stage(const Stage& stage, const Points& outer) {
    const StageValue& value = stage.values[0];
    const graph::Node& node = graph_[value.value];
    const ReduceOp op = node.as<graph::Scan>()->op;
    const auto operand = [&](size_t i) {
      return [&, i](const Index& index, const Point&) {
        return schedule::scanned_accesses(graph_, value.value, index)[i];
      };
    };
    const Var none = builder_.constant(neutral(op, node.dtype()));
    std::vector<Var> initial(outer.size(), none);
    if (node.inputs.size() == 2) initial = at_points(stage, outer, operand(1));
    const int lanes = mapping_.vec.empty() ? 1 : values_.lanes();
    std::vector<Var> sums;
    for (const Var v : initial) sums.push_back(builder_.acc(builder_.splat(v, lanes)));
    stage_nest(stage.axes, 0, outer, false, [&](const Points& points) {
      const std::vector<Var> elements = at_points(stage, points, operand(0));
      for (size_t i = 0; i < points.size(); ++i) {
        const Var sum =
            builder_.alu_here(alu_of(op), {sums[i], builder_.splat(elements[i], lanes)});
        builder_.assign(sums[i], sum);
        values_.store(value.value, schedule::value_position(stage, value, points[i].axes), sum,
                      points[i].mask, nontemporal_.count(value.value.id) > 0);
      }
    });
  }

  void scatter_stage(const Stage& stage, const Points& outer) {
    const StageValue& value = stage.values[0];
    const graph::Node& node = graph_[value.value];
    const auto& scatter = *node.as<graph::Scatter>();
    const int64_t size = node.shape()[scatter.axis];
    const int64_t stride = contiguous_strides(node.shape())[scatter.axis];
    const auto operand = [&](size_t i) {
      return [&, i](const Index& index, const Point& point) {
        const Expr number = schedule::inner_position(stage, value, point.axes);
        return schedule::scattered_accesses(graph_, value.value, index, number)[i];
      };
    };
    stage_nest(stage.axes, 0, outer, false, [&](const Points& points) {
      const std::vector<Var> indices = at_points(stage, points, operand(0));
      const std::vector<Var> updates = at_points(stage, points, operand(1));
      for (size_t i = 0; i < points.size(); ++i) {
        const ValueEmitter::Position along = values_.checked_position(indices[i], size);
        const Expr position =
            schedule::value_position(stage, value, points[i].axes) + along.position * stride;
        values_.update(value.value, position, updates[i], points[i].mask, along.valid,
                       graph::reduce_op(scatter.mode));
      }
    });
  }

  // Reduce stages.

  ReduceOp reduce_op(Value v) const {
    const auto* reduce = graph_[v].as<graph::Reduce_Axis>();
    return reduce ? reduce->op : ReduceOp::Add;
  }

  Var identity_of(Value v, int lanes) {
    return builder_.constant(identity(reduce_op(v), graph_[v].dtype()), lanes);
  }

  std::vector<Accumulation> open_accumulators(const Stage& stage, const Points& outer,
                                              int64_t slots, int lanes) {
    std::vector<Accumulation> result;
    for (const StageValue& value : stage.values)
      for (const Point& point : outer) {
        Accumulation accumulation{&value, &point, {}};
        for (int64_t s = 0; s < slots; ++s)
          accumulation.slots.push_back(builder_.acc(identity_of(value.value, lanes)));
        result.push_back(std::move(accumulation));
      }
    return result;
  }

  // Long sums restart, so that no accumulator adds too many terms one by one.
  void reduce_nest(const Stage& stage, const Ints& loops, std::vector<Accumulation>& sums) {
    const int64_t last = loops.empty() ? -1 : loops.back();
    const bool blocked = last >= 0 && !contains(mapping_.thread, last) &&
                         iter_.tiles[last].size() > 1 && !is_symbolic(last);
    if (!blocked) return accumulate_nest(stage, loops, sums);
    const int64_t size = extent(last), tile = iter_.tiles[last].front(), width = step(last);
    const Ints around(loops.begin(), loops.end() - 1);
    stage_nest(around, 0, {inner_start()}, true, [&](const Points& points) {
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
      const auto steps = [&](std::vector<Accumulation>& partial, const Expr& first, int64_t count) {
        loop(count, [&](const Expr& i) {
          accumulate(stage, partial, extend(points, last, (first + i) * width, width, true));
        });
      };
      const int64_t full = size / tile, leftover = size % tile, rest = leftover % width;
      loop(full, [&](const Expr& number) {
        block([&](std::vector<Accumulation>& partial) {
          steps(partial, number * (tile / width), tile / width);
        });
      });
      if (!leftover) return;
      block([&](std::vector<Accumulation>& partial) {
        if (leftover >= width) steps(partial, Expr(full * (tile / width)), leftover / width);
        if (rest) accumulate(stage, partial, extend(points, last, Expr(size - rest), rest, true));
      });
    });
  }

  void accumulate_nest(const Stage& stage, const Ints& loops, std::vector<Accumulation>& sums) {
    stage_nest(loops, 0, {inner_start()}, true,
               [&](const Points& points) { accumulate(stage, sums, points); });
  }

  // The loops of a reduce stage extend one point that stands for all outer points.
  Point inner_start() const { return {std::vector<Expr>(iter_.axes.size()), {}, 0}; }

  void combine_into(Var acc, Var value, ReduceOp op) {
    builder_.assign(acc, builder_.alu_here(alu_of(op), {acc, value}));
  }

  // One iteration: `inner` points for every outer point, each into its accumulator. A contraction's
  // operands are loaded as the register tile comes to them, so that few are live at once.
  void accumulate(const Stage& stage, const std::vector<Accumulation>& sums, const Points& inner) {
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
        for (const int64_t axis : stage.axes) axes[axis] = point.axes[axis];
        Mask mask = sum.point->mask;
        mask.require(point.mask);
        const Value v = sum.value->value;
        const Index reduced = sym::unflatten_index(
            schedule::inner_position(stage, *sum.value, axes), schedule::reduced_shape(graph_, v));
        for (Access& access :
             schedule::reduction_accesses(graph_, v, index_of(stage, *sum.value, axes), reduced)) {
          access.mask.require(mask);
          wanted.push_back(std::move(access));
        }
        terms.push_back({sum.slots[point.slot], v, point.mask});
        if (graph_[v].kind() == graph::NodeKind::Contract) fold();
      }
    fold();
    if (stage.keeps) keep_operands(stage, *sums.front().point, inner);
  }

  // Keeps what the stage has just reduced at these points of the row at `outer`.
  void keep_operands(const Stage& stage, const Point& outer, const Points& inner) {
    Points points = inner;
    for (Point& point : points) {
      for (size_t i = 0; i < point.axes.size(); ++i)
        if (!contains(stage.axes, static_cast<int64_t>(i))) point.axes[i] = outer.axes[i];
      point.mask.require(outer.mask);
    }
    keep_points(stage, kept_index(*stage.keeps, outer.axes), points);
  }

  // Folds a point's operands into its accumulator; returns how many there are.
  size_t add_term(Var acc, Value v, const Mask& mask, const Var* operands) {
    const Type type = builder_.type(acc);
    const Var valid = values_.emit(mask);
    const auto operand = [&](Var x, Scalar otherwise) {
      if (valid.valid()) x = values_.where(valid, x, builder_.constant(otherwise));
      return values_.match(x, type);
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

  void reduce_stage(const Stage& stage, const Points& outer) {
    const Ints loops = stage_loops(stage);
    int64_t slots = 1;
    bool lanes_inside = false;
    for (const int64_t axis : loops) {
      if (!contains(mapping_.thread, axis)) slots = std::max(slots, step(axis) / lanes_of(axis));
      lanes_inside |= contains(mapping_.vec, axis);
    }
    const bool lanes_outside = std::any_of(
        outer_.begin(), outer_.end(), [&](int64_t axis) { return contains(mapping_.vec, axis); });
    const int lanes = lanes_inside || lanes_outside ? values_.lanes() : 1;
    std::vector<Accumulation> sums = open_accumulators(stage, outer, slots, lanes);
    reduce_nest(stage, loops, sums);
    if (stage.keeps) values_.hold(stage.keeps->value, kept_index(*stage.keeps, outer.front().axes));
    const bool across_threads = !loops.empty() && contains(mapping_.thread, loops.back());
    for (const Accumulation& sum : sums) {
      const ReduceOp op = reduce_op(sum.value->value);
      Var total = combine(sum.slots, op);
      if (lanes_inside) total = combine_lanes(total, op);
      if (across_threads) total = combine_threads(total, op);
      values_.define(sum.value->value, schedule::value_position(stage, *sum.value, sum.point->axes),
                     total);
    }
  }

  // A tree over values.
  Var combine(std::vector<Var> values, ReduceOp op) {
    while (values.size() > 1) {
      std::vector<Var> next;
      for (size_t i = 0; i + 1 < values.size(); i += 2)
        next.push_back(builder_.alu_here(alu_of(op), {values[i], values[i + 1]}));
      if (values.size() % 2) next.push_back(values.back());
      values = std::move(next);
    }
    return values[0];
  }

  // A tree over the lanes, by halves.
  Var combine_lanes(Var x, ReduceOp op) {
    for (int lanes = builder_.type(x).lanes; lanes > 1; lanes /= 2) {
      Ints low, high;
      for (int i = 0; i < lanes / 2; ++i) low.push_back(i), high.push_back(i + lanes / 2);
      const Var a = builder_.gep_here(x, low), b = builder_.gep_here(x, high);
      x = builder_.alu_here(alu_of(op), {a, b});
    }
    return x;
  }

  // All threads of the group get the result.
  Var combine_threads(Var x, ReduceOp op) {
    const int64_t width = caps_.simd_width;
    const auto& simd_ops = caps_.simd_ops[static_cast<int>(builder_.type(x).dtype)];
    const bool by_simd = simd_ops[static_cast<size_t>(alu_of(op))] && threads_ % width == 0 &&
                         threads_ / width <= width;
    return by_simd ? combine_simd_groups(x, op) : combine_through_memory(x, op);
  }

  // Within each SIMD-group; then each of them combines the results of all.
  Var combine_simd_groups(Var x, ReduceOp op) {
    const int64_t width = caps_.simd_width, groups = threads_ / width;
    const DType dtype = builder_.type(x).dtype;
    x = builder_.simd_reduce(alu_of(op), width, x);
    if (groups == 1) return x;
    const Expr thread = thread_number(threads_);
    const Var lane = values_.emit(mod(thread, width));
    const Var shared = builder_.local(dtype, groups);
    const Var first = builder_.alu(AluOp::Cmpeq, {lane, values_.index_constant(0)});
    builder_.store(shared, values_.emit(floordiv(thread, width)), x, first, false);
    builder_.barrier();
    Var valid;
    if (groups < width) valid = builder_.alu(AluOp::Cmplt, {lane, values_.index_constant(groups)});
    x = builder_.load_here(shared, lane, 1, valid);
    if (valid.valid())
      x = builder_.alu_here(AluOp::Where, {valid, x, builder_.constant(neutral(op, dtype))});
    return builder_.simd_reduce(alu_of(op), width, x);
  }

  // A tree over the threads, through shared memory.
  Var combine_through_memory(Var x, ReduceOp op) {
    const Var shared = builder_.local(builder_.type(x).dtype, threads_);
    const Var thread = values_.emit(thread_number(threads_));
    builder_.store(shared, thread, x, {}, false);
    builder_.barrier();
    for (int64_t half = threads_ / 2; half > 0; half /= 2) {
      builder_.open_if(builder_.alu(AluOp::Cmplt, {thread, values_.index_constant(half)}));
      const Var mine = builder_.load_here(shared, thread, 1, {});
      const Var other =
          builder_.load_here(shared, values_.emit(thread_number(threads_) + Expr(half)), 1, {});
      builder_.store(shared, thread, builder_.alu_here(alu_of(op), {mine, other}), {}, false);
      builder_.close_if();
      builder_.barrier();
    }
    return builder_.load_here(shared, values_.index_constant(0), 1, {});
  }

  const schedule::Graph& graph_;
  const schedule::Kernel& kernel_;
  const Capabilities& caps_;
  const schedule::IterSpace& iter_;
  const schedule::Mapping& mapping_;
  const DType index_dtype_;
  ScopedBuilder builder_;
  ValueEmitter values_;
  const Ints outer_;
  const int64_t threads_;
  std::map<int64_t, Expr> thread_;
  std::set<uint32_t> nontemporal_;
  Ints loops_;                              // over outer axes, outermost first
  std::vector<std::optional<Tile>> tiles_;  // by axis: the one that the open loops are in
};

}  // namespace

Kernel lower_kernel(const schedule::Schedule& schedule, const schedule::Kernel& kernel,
                    const Capabilities& caps) {
  return KernelLowerer(schedule, kernel, caps).run();
}

std::vector<Kernel> lower_schedule(const schedule::Schedule& schedule, const Capabilities& caps) {
  std::vector<Kernel> result;
  for (const auto& item : schedule.items)
    if (const schedule::Kernel* kernel = item.kernel())
      result.push_back(lower_kernel(schedule, *kernel, caps));
  return result;
}

}  // namespace rune::lower
