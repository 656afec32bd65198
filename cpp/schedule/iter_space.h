// Iteration spaces of the Scheduled IR: axes, where they run, and the sizes of their tiles.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "types/shape.h"

namespace rune::schedule {

struct Axis {
  std::string name;
  Dim size;
  RUNE_FIELDS(Axis, f("name", name), f("size", size))
  bool is_symbolic() const { return !size.is_constant(); }
  // The largest number of points that it can have.
  int64_t extent() const { return size.bound(); }
};

// Which axes run where. Each list holds positions in IterSpace::axes, outermost first.
//
// `block`: the axes over which a launch's workgroups are numbered, row-major. A workgroup covers
// the outermost tile of each.
//
// `thread`: block axes, or inner axes of stages, whose points are dealt to the `threads` threads of
// a workgroup:
// - The points of an inner axis, or its vectors, are dealt round robin.
// - The points of block axes are numbered and dealt in order. With `points`, a workgroup gets
//   `points` points for each of its threads, and deals them round robin.
// - With `teams`, the threads of a workgroup form `teams` teams. Each team has a point of the block
//   axes, and an inner axis is dealt to the threads of the team.
// - If two block axes have tiles of three sizes, a workgroup covers a rectangle of the first size.
//   It deals rectangles of the second size to its SIMD-groups, and each thread gets a rectangle of
//   the third size.
// - With `mirrored`, these rectangles are squares, and the two axes are the only block axes and
//   have equal sizes. A workgroup covers a square and its mirror image, or a square on the
//   diagonal.
// - With `exchanged`, each thread has one piece of the workgroup's square, as long as a vector. If
//   an operand's neighbours lie along the rows, the threads load the transposed pieces and exchange
//   them through the workgroup's memory.
//
// `serial`: the axes of loops, the outermost first. An outer axis is listed once for each of its
// tile sizes within a workgroup, from the largest to that of the innermost loop. If the outermost
// loop is over tiles of a stage's axis, this axis is listed twice, and the sums along it are
// carried from tile to tile in the kernel's output. The axes of stages that keep tiles of operands
// follow it; their first tile is as long.
//
// `vec`: the axes with the lanes of vectors, `lanes` elements each.
struct Mapping {
  Ints block, thread, vec, serial;
  int64_t lanes = 1;
  int64_t threads = 1;
  std::optional<int64_t> points;
  std::optional<int64_t> teams;
  std::optional<bool> mirrored;
  std::optional<bool> exchanged;
  RUNE_FIELDS(Mapping, f("block", block), f("thread", thread), f("vec", vec), f("serial", serial),
              f("lanes", lanes), f("threads", threads), f("points", points), f("teams", teams),
              f("mirrored", mirrored), f("exchanged", exchanged))
  int64_t team_threads() const { return threads / teams.value_or(1); }
};

// tiles[i]: the sizes of axis i's tiles, outermost first. One workgroup covers the first tile of a
// block axis. One iteration of an axis's innermost loop covers the last tile; for an inner thread
// axis, it does so in each thread. There are no tiles before the mapping. A MatrixPlan divides its
// axes itself, so they have none.
struct IterSpace {
  std::vector<Axis> axes;
  Mapping mapping;
  std::vector<Ints> tiles;
  RUNE_FIELDS(IterSpace, f("axes", axes), f("mapping", mapping), f("tiles", tiles))
  int64_t extent(int64_t axis) const { return axes[axis].extent(); }
  // Elements of one vector along the axis.
  int64_t lanes(int64_t axis) const { return contains(mapping.vec, axis) ? mapping.lanes : 1; }
  // Points, or vectors, of the axis that one iteration of its innermost loop computes.
  int64_t unroll(int64_t axis) const {
    return tiles.empty() || tiles[axis].empty() ? 1 : tiles[axis].back() / lanes(axis);
  }
};

}  // namespace rune::schedule
