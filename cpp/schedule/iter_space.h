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
  // The most points that it has.
  int64_t extent() const { return size.bound(); }
};

// Which axes run where. Each list holds positions in IterSpace::axes, outermost first.
//
// `block`: the launch's workgroups are numbered row-major over these axes, each divided by its
// outermost tile.
// `thread`: block axes, or inner axes of the stages. The points of an inner axis, or its vectors,
// are dealt to the threads of a workgroup round robin. The points of block axes are numbered and
// dealt to threads in order; with `points`, a workgroup gets so many times its threads, and deals
// them round robin. With `teams`, a workgroup's threads are so many teams, each with a point of the
// block axes, and an inner axis is dealt to the threads of a team. If two block axes have tiles of
// three sizes, a workgroup covers a rectangle of the first size. It deals the rectangles of the
// second to its SIMD-groups, and one of the third to each thread. `mirrored`: these rectangles are
// squares of the only block axes, which are of one size. A workgroup covers a square and its mirror
// image, or one on the diagonal. `exchanged`: a thread has one piece of the square that a workgroup
// covers, as long as the vectors. Where an operand's neighbours lie along the rows, threads load
// the transposed pieces, and exchange them through the workgroup's memory. `serial`:
// loops, the outermost first. An outer axis is listed once for each of its tile sizes within a
// workgroup, from the largest to that of the innermost loop. If the outermost loop is over tiles of
// a stage's axis, which is then listed twice, the sums along it are carried from tile to tile in
// the kernel's output; the axes of stages that keep operands' tiles, whose first tile is as long,
// follow it. `vec`: the axes with the lanes of vectors, `lanes` elements each. `threads`: of a
// workgroup.
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

// tiles[i]: sizes of axis i's tiles, outermost first. The first tile of a block axis is what one
// workgroup covers; the last tile of an axis is what one iteration of its innermost loop covers, of
// an inner thread axis for each thread.
// There are no tiles before the mapping, and none of the axes of a MatrixPlan, which divides them
// itself.
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
