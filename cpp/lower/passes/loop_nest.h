// Loops over a kernel's axes, and the points of the iteration space that their bodies compute.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "lower/passes/index_emitter.h"

namespace rune::lower {

// A point of the iteration space that the innermost loops compute: an expression for each axis that
// has been fixed, and a mask that says where the point exists.
struct Point {
  std::vector<sym::Expr> axes;
  sym::Mask mask;
  int64_t slot = 0;       // the number of the reduction's accumulator to which it is added
  sym::Mask stored = {};  // where the point exists, but other points store its results
};
using Points = std::vector<Point>;

// A tile of `size` points along an axis. Tiles are numbered from the axis's start.
struct Tile {
  sym::Expr number;
  int64_t size = 1;
};

// Emits the body of a loop for the points of one iteration.
using Body = std::function<void(const Points&)>;

// Emits loops over axes, with the steps, vectors and threads that the kernel's mapping gives them.
// A loop covers the whole steps of an axis; if points are left, its body is emitted again for them,
// under a mask.
class LoopNest {
 public:
  LoopNest(ScopedBuilder& builder, IndexEmitter& index, const schedule::Kernel& kernel);

  int64_t extent(int64_t axis) const { return iter_.axes[axis].extent(); }
  // The number of points that one iteration of the axis's innermost loop covers.
  int64_t step(int64_t axis) const { return iter_.tiles[axis].back(); }
  bool is_vector(int64_t axis) const;
  bool is_thread(int64_t axis) const;
  // Whether the axis's size is known only when the program runs.
  bool is_symbolic(int64_t axis) const { return iter_.axes[axis].is_symbolic(); }
  sym::Expr size_of_axis(int64_t axis);
  int64_t lanes_of(int64_t axis) const { return is_vector(axis) ? index_.lanes() : 1; }

  // A point without any fixed axis.
  Point origin() const { return {std::vector<sym::Expr>(iter_.axes.size()), {}, 0}; }
  // The number of threads of a workgroup, or of a team if the workgroup has several.
  int64_t threads() const { return threads_; }
  // The thread's number among them. Only the first `used` threads matter.
  sym::Expr thread_number(int64_t used);

  // The number of the workgroup's tile of each block axis.
  std::vector<sym::Expr> workgroup_tiles();

  // If the point may lie beyond the symbolic size of one of these axes, opens an If around the code
  // that follows. Returns whether it has opened one.
  bool open_within_sizes(const Ints& axes, const Point& point);

  // Returns the points that one iteration computes along an axis: `count` elements from `base` on,
  // as vectors if the axis has the lanes. Neighbouring vectors are adjacent in the result. With
  // `into_slots`, each copy of a point has an accumulator of its own.
  Points extend(const Points& points, int64_t axis, const sym::Expr& base, int64_t count,
                bool into_slots);

  // Emits a loop of `count` iterations, or just the body if there is one.
  void loop(int64_t count, const std::function<void(const sym::Expr&)>& body);
  // Emits such a loop that the target's compiler should unroll.
  void unrolled(int64_t count, const std::function<void(const sym::Expr&)>& body);
  // Emits the body for all points of an axis.
  void full_axis(int64_t axis, const Points& points, bool into_slots, const Body& body);
  // Emits the body for the points of an axis that lie in a tile. The last tile may be shorter.
  void tiled_axis(int64_t axis, const Tile& tile, const Points& points, bool into_slots,
                  const Body& body);
  // Emits the body for all points of several axes. The first axis has the outermost loop.
  void nest(const Ints& axes, const Points& points, bool into_slots, const Body& body);
  // A stage's axes in the order of their loops. The axis with the lanes or threads is the last.
  Ints order_of(const schedule::Stage& stage) const;

 private:
  // The tiles of a workgroup if block axes form squares, of which only those on the diagonal and
  // above it have workgroups.
  std::vector<sym::Expr> half_of_squares();
  void symbolic_range(int64_t axis, const sym::Expr& from, const sym::Expr& end,
                      const Points& points, bool into_slots, const Body& body);
  void thread_axis(int64_t axis, const Points& points, const Body& body);

  ScopedBuilder& builder_;
  IndexEmitter& index_;
  const schedule::Kernel& kernel_;
  const schedule::IterSpace& iter_;
  const int64_t threads_;
  std::map<int64_t, sym::Expr> thread_;  // thread_number(), by its argument
};

}  // namespace rune::lower
