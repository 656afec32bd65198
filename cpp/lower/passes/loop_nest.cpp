#include "lower/passes/loop_nest.h"

#include <algorithm>

#include "base/math.h"

namespace rune::lower {

using sym::Expr;
using sym::Mask;

LoopNest::LoopNest(ScopedBuilder& builder, IndexEmitter& index, const schedule::Kernel& kernel)
    : builder_(builder),
      index_(index),
      kernel_(kernel),
      iter_(kernel.iter),
      threads_(kernel.iter.mapping.team_threads()) {}

bool LoopNest::is_vector(int64_t axis) const {
  return contains(iter_.mapping.vec, axis);
}

bool LoopNest::is_thread(int64_t axis) const {
  return contains(iter_.mapping.thread, axis);
}

Expr LoopNest::size_of_axis(int64_t axis) {
  return index_.size(iter_.axes[axis].size);
}

bool LoopNest::open_within_sizes(const Ints& axes, const Point& point) {
  Mask inside;
  for (const int64_t axis : axes)
    if (is_symbolic(axis)) inside.require_nonnegative(size_of_axis(axis) - 1 - point.axes[axis]);
  if (inside.is_true()) return false;
  builder_.open_if(index_.emit(inside));
  return true;
}

std::vector<Expr> LoopNest::workgroup_tiles() {
  if (iter_.mapping.mirrored == true) return half_of_squares();
  Ints counts;
  int64_t total = 1;
  for (const int64_t axis : iter_.mapping.block) {
    const int64_t tile = kernel_.workgroup_tile(axis);
    counts.push_back(ceil_div(extent(axis), tile));
    total *= counts.back();
  }
  if (counts.empty()) return {};
  const Var group = builder_.special(SpecialKind::Workgroup_idx, total, index_.dtype());
  return sym::unflatten_index(index_.bind(group, {0, total - 1}), counts);
}

// The squares on and above the diagonal, without a branch for the others. Row i has i squares fewer
// than the first one. So a row from the beginning and a row from the end together have a fixed
// length: the first and the last row, the second and the last but one, and so on. If the number of
// rows is odd, the first row is alone, and the second one goes with the last.
std::vector<Expr> LoopNest::half_of_squares() {
  const int64_t axis = iter_.mapping.block[0];
  const int64_t side = ceil_div(extent(axis), kernel_.workgroup_tile(axis));
  const int64_t even = 1 - side % 2, length = side + even, lines = ceil_div(side, 2);
  const Var group = builder_.special(SpecialKind::Workgroup_idx, lines * length, index_.dtype());
  const Expr number = index_.bind(group, {0, lines * length - 1});
  const Expr line = index_.emit_and_bind(floordiv(number, length), lines);
  const Expr at = index_.emit_and_bind(mod(number, length), length);
  const Var is_first = builder_.alu(AluOp::Cmple, {index_.emit(line + even), index_.emit(at)});
  const auto choose = [&](const Expr& first, const Expr& last) {
    const Var chosen =
        builder_.alu(AluOp::Where, {is_first, index_.emit(first), index_.emit(last)});
    return index_.bind(chosen, {0, side - 1});
  };
  return {choose(line, Expr(side - even) - line), choose(at - even, Expr(side - 1) - at)};
}

Points LoopNest::extend(const Points& points, int64_t axis, const Expr& base, int64_t count,
                        bool into_slots) {
  const int64_t lanes = lanes_of(axis), copies = ceil_div(count, lanes);
  const auto copy = [&](const Point& point, int64_t u) {
    Point next = point;
    Expr at = base + Expr(u * lanes);
    const int64_t used = std::min(lanes, count - u * lanes);
    if (lanes > 1) at = at + index_.lane(used);
    if (used < lanes) next.mask.require_between(index_.lane(lanes), 0, used);
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

// Runs the body for the points of an axis of symbolic size from `from` to `end`: first full steps
// in a loop, then whole vectors in a loop, and the rest under a mask. (Masks make stores slow on
// some processors.)
void LoopNest::symbolic_range(int64_t axis, const Expr& from, const Expr& end, const Points& points,
                              bool into_slots, const Body& body) {
  const int64_t width = step(axis), lanes = lanes_of(axis), last = extent(axis) - 1;
  Expr start = from;
  const auto whole_steps = [&](int64_t size) {
    const Var steps = index_.emit(floordiv(end - start, size));
    const Var i = builder_.open_range(steps, true);
    const Var at = index_.emit(start + index_.bind(i, {0, last / size}) * size);
    body(extend(points, axis, index_.bind(at, {0, last + 1 - size}), size, into_slots));
    builder_.close_range();
    const Var done = builder_.alu(AluOp::Max, {steps, index_.constant(0)});
    start = start + index_.bind(done, {0, (last + 1) / size}) * size;
  };
  if (last + 1 >= width) whole_steps(width);
  if (width == 1 && last + 1 >= width) return;
  if (lanes > 1 && width > lanes && last + 1 >= lanes) whole_steps(lanes);
  const Var j = builder_.open_range(index_.emit(floordiv(end - start + (lanes - 1), lanes)), true);
  const Var position = index_.emit(start + index_.bind(j, {0, width / lanes}) * lanes);
  Points rest = extend(points, axis, index_.bind(position, {0, last}), lanes, into_slots);
  for (Point& point : rest)
    if (lanes > 1) point.mask.require_nonnegative(end - 1 - point.axes[axis]);
  body(rest);
  builder_.close_range();
}

void LoopNest::full_axis(int64_t axis, const Points& points, bool into_slots, const Body& body) {
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

void LoopNest::loop(int64_t count, const std::function<void(const Expr&)>& body) {
  if (count == 1) return body(Expr(0));
  const Var i = builder_.open_range(index_.constant(count));
  body(index_.bind(i, {0, count - 1}));
  builder_.close_range();
}

void LoopNest::unrolled(int64_t count, const std::function<void(const Expr&)>& body) {
  if (count == 1) return body(Expr(0));
  const Var i = builder_.open_unroll(count, index_.dtype());
  body(index_.bind(i, {0, count - 1}));
  builder_.close_range();
}

void LoopNest::tiled_axis(int64_t axis, const Tile& current, const Points& points, bool into_slots,
                          const Body& body) {
  const int64_t size = extent(axis), tile = current.size, width = step(axis);
  if (is_symbolic(axis)) {
    const Expr from = current.number * tile;
    const Var end =
        builder_.alu(AluOp::Min, {index_.emit(from + Expr(tile)), index_.emit(size_of_axis(axis))});
    return symbolic_range(axis, from, index_.bind(end, {0, size}), points, into_slots, body);
  }
  const int64_t steps = tile / width, total_steps = size / width, rest = size % width;
  const int64_t tiles = ceil_div(size, tile);
  const Expr first_step = current.number * steps;
  Var count = index_.constant(steps);
  if (size % tile != 0)
    count = builder_.alu(AluOp::Min, {count, index_.emit(Expr(total_steps) - first_step)});
  if (total_steps > 0) {
    // The last tile may consist of the remainder alone.
    const Var i = builder_.open_range(count, total_steps <= (tiles - 1) * steps);
    const Expr number = first_step + index_.bind(i, {0, steps - 1});
    const Expr at = index_.emit_and_bind(number, total_steps);
    body(extend(points, axis, at * width, width, into_slots));
    builder_.close_range();
  }
  if (!rest) return;
  // Only the last tile has a remainder.
  if (tiles > 1)
    builder_.open_if(
        builder_.alu(AluOp::Cmpeq, {index_.emit(current.number), index_.constant(tiles - 1)}));
  body(extend(points, axis, Expr(size - rest), rest, into_slots));
  if (tiles > 1) builder_.close_if();
}

Ints LoopNest::order_of(const schedule::Stage& stage) const {
  Ints loops = stage.axes;
  std::stable_partition(loops.begin(), loops.end(),
                        [&](int64_t axis) { return !is_vector(axis) && !is_thread(axis); });
  return loops;
}

void LoopNest::nest(const Ints& axes, const Points& points, bool into_slots, const Body& body) {
  if (axes.empty()) return body(points);
  const int64_t axis = axes.front();
  const Ints rest(axes.begin() + 1, axes.end());
  const Body inner = [&](const Points& extended) { nest(rest, extended, into_slots, body); };
  if (is_thread(axis)) return thread_axis(axis, points, inner);
  full_axis(axis, points, into_slots, inner);
}

Expr LoopNest::thread_number(int64_t used) {
  const auto known = thread_.find(used);
  if (known != thread_.end()) return known->second;
  const int64_t all = iter_.mapping.threads;
  Var number = builder_.special(SpecialKind::Local_thread_idx, all, index_.dtype());
  if (all > threads_) number = index_.emit(mod(index_.bind(number, {0, all - 1}), threads_));
  return thread_[used] = index_.bind(number, {0, used - 1});
}

// Divides an axis among the threads of the workgroup, round robin by vectors. A thread has `step`
// points at a time.
void LoopNest::thread_axis(int64_t axis, const Points& points, const Body& body) {
  const int64_t lanes = lanes_of(axis), turn = threads_ * lanes;
  const int64_t size = extent(axis), rest = size % turn;
  const Expr thread = thread_number(threads_);
  const auto at = [&](const Expr& position) {
    Points extended = points;
    for (Point& point : extended)
      point.axes[axis] = lanes > 1 ? position + index_.lane(lanes) : position;
    return extended;
  };
  if (is_symbolic(axis)) {
    const Expr end = size_of_axis(axis);
    const Var i = builder_.open_range(index_.emit(floordiv(end + (threads_ - 1), threads_)), true);
    const Var position =
        index_.emit(index_.bind(i, {0, (size - 1) / threads_}) * threads_ + thread);
    Points inside = at(index_.bind(position, {0, size - 1}));
    for (Point& point : inside) point.mask.require_nonnegative(end - 1 - point.axes[axis]);
    body(inside);
    builder_.close_range();
    return;
  }
  // In an iteration, all threads have one vector each, then all have the next.
  const int64_t width = step(axis) / lanes, each = size / turn;
  const auto rounds = [&](const Expr& first, int64_t count) {
    Points all;
    for (int64_t i = 0; i < count; ++i)
      for (Point& point : at((first + i) * turn + thread * lanes)) all.push_back(std::move(point));
    body(all);
  };
  if (each >= width) loop(each / width, [&](const Expr& i) { rounds(i * width, width); });
  if (each % width) rounds(Expr(each - each % width), each % width);
  if (!rest) return;
  const int64_t used = rest / lanes;
  Points last = at(Expr(size - rest) + thread_number(used) * lanes);
  for (Point& point : last) point.mask.require_between(thread, 0, used);
  body(last);
}

}  // namespace rune::lower
