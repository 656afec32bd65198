// Iteration spaces of the Scheduled IR: axes, where they run, and the sizes of their tiles.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "types/shape.h"

namespace rune::schedule {

enum class AxisRole : uint8_t { Normal, Reduction };
const char* name_of(AxisRole role);

// `size` is known, or `sym` gives it when the program runs.
struct Axis {
  std::string name;
  std::optional<int64_t> size;
  std::optional<SymVar> sym;
  AxisRole role = AxisRole::Normal;
  bool operator==(const Axis&) const = default;
  template <class F>
  void fields(F&& f) {
    f("name", name);
    f("size", size);
    f("sym", sym);
    f("role", role);
  }
  int64_t extent() const { return size ? *size : sym->max_val; }
};

// Which axes run where; each list holds positions in IterSpace::axes, outermost first. The block
// axes, each divided by its outermost tile, are linearised row-major into the launch's workgroups.
// A thread axis is also a block axis (its points, linearised with those of the other block axes,
// are dealt to threads in order) or an inner axis of the stages (dealt to the threads of the group
// round robin). Serial axes are loops, in this order: an outer axis is listed once for each of its
// tile sizes within the workgroup's, from the largest to the innermost loop's. Vec axes are the
// lanes of vectors.
struct Mapping {
  Ints block, thread, vec, serial;
  bool operator==(const Mapping&) const = default;
  template <class F>
  void fields(F&& f) {
    f("block", block);
    f("thread", thread);
    f("vec", vec);
    f("serial", serial);
  }
};

// tiles[i]: sizes of axis i's tiles, outermost first; a block axis's first tile is what one
// workgroup covers, and the last tile of an axis is what one iteration of its innermost loop covers
// (unroll factor times lanes).
struct IterSpace {
  std::vector<Axis> axes;
  Mapping mapping;
  std::vector<Ints> tiles;
  bool operator==(const IterSpace&) const = default;
  template <class F>
  void fields(F&& f) {
    f("axes", axes);
    f("mapping", mapping);
    f("tiles", tiles);
  }
};

}  // namespace rune::schedule
