#include "lower/passes/lower_kernel.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "alu/eval.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/math.h"
#include "lower/passes/kernel_context.h"
#include "lower/passes/matrix_stage.h"
#include "lower/passes/mirrored_store.h"
#include "lower/passes/reduce_stage.h"
#include "lower/passes/sequential_stages.h"
#include "lower/passes/squares.h"
#include "schedule/structure.h"

namespace rune::lower {

using schedule::Stage;
using schedule::StageKind;
using schedule::StageValue;
using sym::Expr;
using sym::Mask;

namespace {

// Emits the loops over a kernel's outer axes, and the stages inside of them.
class KernelLowerer {
 public:
  KernelLowerer(Launch& launch, const schedule::Kernel& kernel, bool is_phase = false)
      : context_(launch, kernel),
        kernel_(kernel),
        is_phase_(is_phase),
        iter_(kernel.iter),
        mapping_(kernel.iter.mapping),
        builder_(context_.builder),
        index_(context_.index),
        memory_(context_.memory),
        values_(context_.values),
        nest_(context_.nest),
        tiles_(kernel.iter.axes.size()) {
    loops_ = schedule::outer_loops(kernel);
    for (const int64_t axis : mapping_.block)
      sizes_.push_back(nest_.extent(axis)), total_ *= nest_.extent(axis);
    for (const schedule::Kernel& phase : kernel.phases())
      phases_.push_back(std::make_unique<KernelLowerer>(launch, phase, true));
  }

  Kernel run() {
    Point start = nest_.origin();
    if (kernel_.matrix()) {
      deal_to_simd_groups(start);
    } else if (kernel_.deals_squares()) {
      deal_squares(context_, start, [this](const Points& points) { run_stages(points); });
    } else if (kernel_.deals_points_to_threads()) {
      deal_to_threads(start);
    } else if (mapping_.teams) {
      deal_to_teams(start);
    } else {
      const std::vector<Expr> groups = nest_.workgroup_tiles();
      // Block axes of which a workgroup has one point need no loop.
      Ints fixed;
      for (size_t i = 0; i < mapping_.block.size(); ++i) {
        const int64_t axis = mapping_.block[i];
        tiles_[axis] = {groups[i], iter_.tiles[axis].front()};
        if (contains(loops_, axis)) continue;
        fixed.push_back(axis);
        start.axes[axis] = groups[i];
      }
      const bool within = nest_.open_within_sizes(fixed, start);
      carry_sums(start);
      if (within) builder_.close_if();
    }
    return builder_.finish(kernel_.name, kernel_.workgroups(), mapping_.threads);
  }

 private:
  Point point_of(const Expr& number, Point point) const {
    const std::vector<Expr> index = sym::unflatten_index(number, sizes_);
    for (size_t i = 0; i < mapping_.block.size(); ++i) point.axes[mapping_.block[i]] = index[i];
    return point;
  }

  // Each thread of the grid computes one point of the linearised block axes, or several points at
  // distances of the workgroup's size. In the latter case, all loads come before all stores. The
  // last workgroup, which may have fewer points, computes them one after the other.
  void deal_to_threads(const Point& start) {
    if (mapping_.points) return deal_some_to_threads(start, *mapping_.points);
    const int64_t launched = kernel_.workgroups() * nest_.threads();
    const Var number = builder_.special(SpecialKind::Global_task_idx, launched, index_.dtype());
    const bool guarded = launched > total_;
    if (guarded) builder_.open_if(builder_.alu(AluOp::Cmplt, {number, index_.constant(total_)}));
    const Point point = point_of(index_.bind(number, {0, total_ - 1}), start);
    const bool within = nest_.open_within_sizes(mapping_.block, point);
    outer_loops(0, {point});
    if (within) builder_.close_if();
    if (guarded) builder_.close_if();
  }

  void deal_some_to_threads(const Point& start, int64_t points) {
    const int64_t threads = nest_.threads(), of_group = threads * points;
    const int64_t groups = kernel_.workgroups(), full = total_ / of_group;
    const Var group = builder_.special(SpecialKind::Workgroup_idx, groups, index_.dtype());
    const Var thread = builder_.special(SpecialKind::Local_thread_idx, threads, index_.dtype());
    const Expr first =
        index_.bind(group, {0, groups - 1}) * of_group + index_.bind(thread, {0, threads - 1});
    const auto at = [&](const Expr& number) {
      return point_of(index_.bind(index_.emit(number), {0, total_ - 1}), start);
    };
    if (full < groups) builder_.open_if(builder_.alu(AluOp::Cmplt, {group, index_.constant(full)}));
    Points all;
    for (int64_t i = 0; i < points; ++i) all.push_back(at(first + Expr(i * threads)));
    outer_loops(0, all);
    if (full == groups) return;
    builder_.close_if();
    builder_.open_if(builder_.alu(AluOp::Cmpeq, {group, index_.constant(full)}));
    const Var i = builder_.open_range(index_.constant(ceil_div(total_ - full * of_group, threads)));
    const Expr number = first + index_.bind(i, {0, points - 1}) * threads;
    builder_.open_if(builder_.alu(AluOp::Cmplt, {index_.emit(number), index_.constant(total_)}));
    outer_loops(0, {at(number)});
    builder_.close_if();
    builder_.close_range();
    builder_.close_if();
  }

  // Each team of a workgroup's threads computes one point of the linearised block axes. The last
  // teams may have no point. They run with a masked point, because all threads of a SIMD-group must
  // take part when it combines values.
  void deal_to_teams(Point start) {
    const int64_t teams = *mapping_.teams, groups = kernel_.workgroups();
    const Var group = builder_.special(SpecialKind::Workgroup_idx, groups, index_.dtype());
    const Var thread =
        builder_.special(SpecialKind::Local_thread_idx, mapping_.threads, index_.dtype());
    const Expr team = floordiv(index_.bind(thread, {0, mapping_.threads - 1}), nest_.threads());
    const Expr number =
        index_.emit_and_bind(index_.bind(group, {0, groups - 1}) * teams + team, groups * teams);
    start.mask.require_nonnegative(Expr(total_ - 1) - number);
    start = point_of(index_.bind(index_.emit(number), {0, total_ - 1}), start);
    outer_loops(0, {start});
  }

  // Each SIMD-group computes a rectangle of matrix tiles.
  void deal_to_simd_groups(Point group) {
    const std::vector<Expr> blocks = nest_.workgroup_tiles();
    for (size_t i = 0; i < mapping_.block.size(); ++i) group.axes[mapping_.block[i]] = blocks[i];
    matrix_.emplace(context_);
    run_stages(matrix_->points(group));
  }

  // Emits the loops over outer axes. If sums are carried along an axis, emits them for each of its
  // tiles. If tiles of operands are kept, the loops' code is long, so it is emitted only once.
  void carry_sums(const Point& start) {
    const std::optional<int64_t> axis = kernel_.carried_axis();
    if (!axis) return outer_loops(0, {start});
    const int64_t size = nest_.extent(*axis), tile = iter_.tiles[*axis].front();
    const int64_t last = (ceil_div(size, tile) - 1) * tile;
    if (keeps_tiles()) {
      nest_.loop(ceil_div(size, tile), [&](const Expr& number) {
        context_.carried = {*axis, number * tile, tile, false, false, Tile{number, tile}};
        outer_loops(0, {start});
      });
      context_.carried.reset();
      return;
    }
    context_.carried = {*axis, Expr(0), tile, true, false};
    outer_loops(0, {start});
    nest_.loop(last / tile - 1, [&](const Expr& i) {
      context_.carried = {*axis, (i + 1) * tile, tile, false, false};
      outer_loops(0, {start});
    });
    context_.carried = {*axis, Expr(last), size - last, false, true};
    outer_loops(0, {start});
    context_.carried.reset();
  }

  // Emits the loops over outer axes, outermost first, with the stages that run between them. Then
  // emits the other stages.
  void outer_loops(size_t depth, const Points& points) {
    keep_tiles(depth, points);
    if (depth == loops_.size()) return phases_.empty() ? run_tile(points) : run_phases(points);
    for (const auto& phase : phases_) phase->keep_tiles(depth, {phase->enter(*this, points)});
    const int64_t axis = loops_[depth];
    const Body body = [&](const Points& extended) { outer_loops(depth + 1, extended); };
    const bool into_tiles = !phases_.empty() && nest_.step(axis) > 1;
    if (!is_innermost(depth) || into_tiles) return tile_loop(depth, [&] { body(points); });
    axis_loop(axis, points, body);
  }

  // Emits the innermost loop over an outer axis, within its current tile.
  void axis_loop(int64_t axis, const Points& points, const Body& body) {
    if (!tiles_[axis]) return nest_.full_axis(axis, points, false, body);
    nest_.tiled_axis(axis, *tiles_[axis], points, false, body);
  }

  bool is_innermost(size_t depth) const {
    return std::find(loops_.begin() + depth + 1, loops_.end(), loops_[depth]) == loops_.end();
  }

  // Emits the loop over the tiles of the next size within an axis's current tile.
  void tile_loop(size_t depth, const std::function<void()>& body) {
    const int64_t axis = loops_[depth], size = nest_.extent(axis);
    const auto outer_loops = std::count(loops_.begin(), loops_.begin() + depth, axis);
    const int64_t inner = iter_.tiles[axis][outer_loops + contains(mapping_.block, axis)];
    const int64_t total = ceil_div(size, inner);
    const std::optional<Tile> outer = tiles_[axis];
    const int64_t count = outer ? outer->size / inner : total;
    const Expr first = outer ? outer->number * count : Expr(0);
    Var bound = index_.constant(count);
    if (total % count != 0)
      bound = builder_.alu(AluOp::Min, {bound, index_.emit(Expr(total) - first)});
    const Var i = builder_.open_range(bound);
    const Expr number = index_.emit_and_bind(first + index_.bind(i, {0, count - 1}), total);
    tiles_[axis] = {number, inner};
    body();
    tiles_[axis] = outer;
    builder_.close_range();
  }

  bool keeps_tiles() const {
    return std::any_of(kernel_.stages().begin(), kernel_.stages().end(),
                       [](const Stage& stage) { return stage.depth.has_value(); });
  }

  void keep_tiles(size_t depth, const Points& points) {
    for (const Stage& stage : kernel_.stages())
      if (stage.depth == static_cast<int64_t>(depth)) keep_tile(stage, points);
  }

  // Whether the stage's tile differs from the one that the previous workgroup has left in scratch
  // memory. No Var if the tile always has to be filled.
  Var differs_from_previous(const Stage& stage) {
    const int64_t sharing = is_phase_ ? 1 : kernel_.workgroups_sharing(stage);
    if (sharing == 1) return {};
    const int64_t groups = kernel_.workgroups();
    const Var group = builder_.special(SpecialKind::Workgroup_idx, groups, index_.dtype());
    const Var previous =
        builder_.special(SpecialKind::Previous_workgroup_idx, groups, index_.dtype());
    const Expr of_group = floordiv(index_.bind(group, {0, groups - 1}), sharing);
    const Expr of_previous = floordiv(index_.bind(previous, {-1, groups - 1}), sharing);
    return builder_.alu(AluOp::Cmpne, {index_.emit(of_group), index_.emit(of_previous)});
  }

  // Fills scratch memory with a value's elements. It has the elements for the current tiles of
  // those axes that are not yet reduced to a point by a loop.
  void keep_tile(const Stage& stage, const Points& points) {
    const StageValue& kept = *stage.keeps;
    Ints tiled;
    for (const int64_t axis : context_.outer)
      if (!is_point(axis, *stage.depth) && kept.strides[axis] != 0) tiled.push_back(axis);
    Point start = start_of_tiles(*stage.depth, points.front());
    if (context_.carried)
      for (const int64_t axis : stage.axes) start.axes[axis] = context_.carried->first;
    const Index origin = context_.kept_index(kept, start.axes);
    const Body keep = [&](const Points& all) { context_.keep_points(stage, origin, all); };
    const auto own_axes = [&](const Points& outer, const Body& body) {
      if (!context_.carried) return nest_.nest(nest_.order_of(stage), outer, false, body);
      nest_.tiled_axis(stage.axes.front(), *context_.carried->of_loop, outer, false, body);
    };
    // If a tiled axis is contiguous, its loop is inside, so that long runs of memory are read from
    // end to end.
    const bool along_tiles = std::any_of(tiled.begin(), tiled.end(),
                                         [&](int64_t axis) { return kept.strides[axis] == 1; });
    const Var is_new = differs_from_previous(stage);
    if (is_new.valid()) builder_.open_if(is_new);
    if (along_tiles)
      own_axes(points, [&](const Points& inner) { tile_nest(tiled, inner, keep); });
    else
      tile_nest(tiled, points, [&](const Points& outer) { own_axes(outer, keep); });
    if (is_new.valid()) builder_.close_if();
    memory_.hold(kept.value, origin);
  }

  // Whether the first `depth` loops have reduced an axis to a point.
  bool is_point(int64_t axis, int64_t depth) const {
    return !contains(Ints(loops_.begin() + depth, loops_.end()), axis);
  }

  // The first point, in the first lane, of the current tiles inside of the first `depth` loops.
  Point start_of_tiles(int64_t depth, Point point) const {
    for (const int64_t axis : context_.outer) {
      if (is_point(axis, depth)) {
        point.axes[axis] = with_lane(point.axes[axis], Expr(0));
      } else {
        point.axes[axis] = tiles_[axis] ? tiles_[axis]->number * tiles_[axis]->size : Expr(0);
      }
    }
    return point;
  }

  void tile_nest(const Ints& axes, const Points& points, const Body& body) {
    if (axes.empty()) return body(points);
    const Ints rest(axes.begin() + 1, axes.end());
    axis_loop(axes.front(), points,
              [&](const Points& extended) { tile_nest(rest, extended, body); });
  }

  // Begins this phase at the current tiles of `around`, the kernel with this phase. Returns the
  // point there.
  Point enter(KernelLowerer& around, const Points& points) {
    const auto known_here = [&](const Expr& expr) {
      if (expr.is_constant()) return expr;
      return index_.bind(around.index_.emit(expr), expr.bounds());
    };
    Point point = nest_.origin();
    for (size_t axis = 0; axis < around.tiles_.size(); ++axis) {
      point.axes[axis] = known_here(points.front().axes[axis]);
      tiles_[axis].reset();
      if (const std::optional<Tile>& tile = around.tiles_[axis])
        tiles_[axis] = {known_here(tile->number), tile->size};
    }
    return point;
  }

  void run_phases(const Points& points) {
    const size_t depth = loops_.size();
    for (const auto& phase : phases_) {
      const Point point = phase->enter(*this, points);
      const Point start = phase->start_of_tiles(static_cast<int64_t>(depth), point);
      for (const schedule::Scratch& buffer : kernel_.scratch) {
        StageValue between = *kernel_.stored(buffer.value);
        between.strides.resize(iter_.axes.size());
        between.strides.resize(start.axes.size(), 0);
        phase->memory_.place_in_scratch(between.value, memory_,
                                        phase->context_.kept_index(between, start.axes));
      }
      phase->outer_loops(depth, {point});
    }
  }

  // Runs the stages for a tile, unless all its points are mirror images of others.
  void run_tile(const Points& points) {
    const schedule::Mirror* mirror = kernel_.mirror();
    if (!mirror) return run_stages(points);
    Mask any;
    any.require_nonnegative(points.back().axes[mirror->rows] -
                            with_lane(points.front().axes[mirror->columns], Expr(0)));
    const Var has_any = index_.emit(any);
    if (has_any.valid()) builder_.open_if(has_any);
    run_stages(points);
    if (has_any.valid()) builder_.close_if();
  }

  void run_stages(const Points& points) {
    bool in_if = false;
    for (const Stage& stage : kernel_.stages()) {
      if (stage.depth) continue;
      if (stage.kind == StageKind::Map && context_.carried && !context_.carried->ends && !in_if)
        continue;
      memory_.take(stage.takes.value_or(std::vector<Value>{}));
      memory_.prefetch_for(stage);
      switch (stage.kind) {
        case StageKind::Reduce: in_if = reduce_stage(stage, points); break;
        case StageKind::Map: map_stage(stage, points); break;
        case StageKind::Scan: lower_scan_stage(context_, stage, points); break;
        case StageKind::Scatter: lower_scatter_stage(context_, stage, points); break;
      }
    }
    if (in_if) builder_.close_if();
  }

  void map_stage(const Stage& stage, const Points& outer) {
    nest_.nest(nest_.order_of(stage), outer, false, [&](const Points& points) {
      std::vector<Access> wanted;
      for (const StageValue& value : stage.values)
        for (const Point& point : points)
          wanted.push_back({value.value, context_.index_of(stage, value, point.axes), point.mask});
      const std::vector<Var> results = evaluate(wanted);
      size_t i = 0;
      for (const StageValue& value : stage.values) {
        std::vector<MemoryEmitter::Element> elements;
        for (const Point& point : points) {
          Mask mask = point.mask;
          mask.require(point.stored);
          if (stage.axes.empty() && nest_.threads() > 1) require_first_thread(mask);
          elements.push_back(
              {schedule::value_position(stage, value, point.axes), results[i++], mask});
        }
        if (const schedule::Mirror* mirror = kernel_.mirror()) {
          store_mirrored(context_, stage, value, points, std::move(elements), *mirror);
        } else if (kernel_.is_atomic()) {
          combine_atomically(value.value, elements);
        } else {
          memory_.store(value.value, elements, context_.is_nontemporal(value.value));
        }
      }
    });
  }

  // The values that a Map stage stores. For reductions that the kernel does not compute, they are
  // the identities.
  std::vector<Var> evaluate(const std::vector<Access>& wanted) {
    const auto node = [&](const Access& access) -> const graph::Node& {
      return context_.graph[access.value];
    };
    const bool reduces = std::any_of(kernel_.stages().begin(), kernel_.stages().end(),
                                     [](auto& s) { return s.kind == StageKind::Reduce; });
    if (reduces || schedule::evaluation_of(node(wanted.front())) != schedule::Evaluation::Reduction)
      return values_.evaluate(wanted);
    std::vector<Var> identities;
    for (const Access& access : wanted)
      identities.push_back(
          builder_.constant(identity(schedule::reduction_op(node(access)), node(access).dtype())));
    return identities;
  }

  void combine_atomically(Value v, const std::vector<MemoryEmitter::Element>& elements) {
    for (const MemoryEmitter::Element& element : elements)
      memory_.update(v, element, {}, {schedule::reduction_op(context_.graph[v]), true});
  }

  // Emits a Reduce stage. Returns whether it has opened an If around the following stages.
  bool reduce_stage(const Stage& stage, const Points& points) {
    if (!matrix_) return lower_reduce_stage(context_, stage, points);
    matrix_->run(stage, points);
    return false;
  }

  // If all threads of a workgroup have the same result, only the first one stores it.
  void require_first_thread(Mask& mask) {
    const bool share =
        std::any_of(kernel_.stages().begin(), kernel_.stages().end(), [&](auto& stage) {
          return stage.kind == StageKind::Reduce && !stage.axes.empty() &&
                 nest_.is_thread(nest_.order_of(stage).back());
        });
    if (share) mask.require_between(nest_.thread_number(nest_.threads()), 0, 1);
  }

  KernelContext context_;
  const schedule::Kernel& kernel_;
  const bool is_phase_;
  const schedule::IterSpace& iter_;
  const schedule::Mapping& mapping_;
  ScopedBuilder& builder_;
  IndexEmitter& index_;
  MemoryEmitter& memory_;
  ValueEmitter& values_;
  LoopNest& nest_;
  std::optional<MatrixStage> matrix_;  // emits the kernel's contraction
  std::vector<std::unique_ptr<KernelLowerer>> phases_;
  Ints sizes_;                              // of the block axes
  int64_t total_ = 1;                       // number of their points
  Ints loops_;                              // the outer axes of loops, outermost first
  std::vector<std::optional<Tile>> tiles_;  // by axis: the current tile
};

}  // namespace

std::vector<Kernel> lower_schedule(const schedule::Schedule& schedule, const Capabilities& caps,
                                   const Placements& placements) {
  const std::vector<SymVar> vars = schedule.graph.symbolic_vars();
  std::vector<Kernel> result;
  for (const schedule::Kernel& kernel : schedule.kernels) {
    check_interrupt();
    Launch launch(schedule.graph, kernel, vars, caps, placements);
    result.push_back(KernelLowerer(launch, kernel).run());
  }
  return result;
}

}  // namespace rune::lower
