// The iterations of a loop, and the boxes of arrays that they write.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "graph/loops.h"

namespace rune::graph {

// Iterations by number, from 0 on.
struct Iterations {
  SymVar counter;
  Dim first;  // the counter's first value
  int64_t step = 1;
  Dim count;  // not negative

  // The iterations of a loop. Nothing if a condition may end it, or if its bounds depend on
  // anything but constants and the counters of other loops.
  static std::optional<Iterations> of(const Graph& graph, const LoopTree& tree, Value end);

  bool decide(const Dim& size) const { return size.depends_on(counter.name); }
  // The size in an iteration.
  Dim at(const Dim& number, const Dim& size) const;
  // By how much the size grows from one iteration to the next. Nothing if that is no constant.
  std::optional<int64_t> growth(const Dim& size) const;
  // The least or the greatest value of a size that grows by `growth`.
  Dim extreme(const Dim& size, int64_t growth, bool is_least) const;
  // The least `low` and the greatest `high` of all iterations. Nothing if one of them does not grow
  // by a constant.
  std::optional<std::pair<Dim, Dim>> hull(const Dim& low, const Dim& high) const;
};

// An Update of a carried array by which each iteration writes a box of its own. The boxes lie side
// by side along `axis`. Along other axes the counter may decide their limits.
struct Write {
  Value update;
  int64_t axis = 0;
  Dim offset;          // of the box, along the axis
  int64_t size = 0;    // of the box, along the axis
  int64_t stride = 0;  // from the box of one iteration to that of the next: size or -size
  Ints windows;        // the other axes along which the counter decides the box

  // Nothing if the Update is no such Write.
  static std::optional<Write> of(const Graph& graph, const Iterations& iterations, Value update);
};

// The boxes of a carried array that an iteration replaces, one after the other.
struct Writes {
  std::vector<Write> boxes;  // in order
  // Whether all boxes of an iteration are between the same limits of one axis, which no other
  // iteration touches.
  bool share_axis = true;

  // Adds the last update. Returns false if it is no Write.
  bool add(const Graph& graph, const Iterations& iterations, Value update);
  // Whether the part of the array lies between those limits.
  bool own(const Shrink& part) const;
  // Whether an iteration that reads this part of the array after `count` of its writes finds what
  // was there before the loop: neither it nor an earlier iteration has written there.
  bool leave(const Graph& graph, const Iterations& iterations, const Shrink& part,
             size_t count) const;
};

// The values that the array which the loop carries as number k has during an iteration: its Carry,
// Updates and Loop_Results, also those of inner loops. Nothing if it changes in another way than by
// Updates.
std::optional<std::vector<Value>> values_of_updated(const Graph& graph, const LoopTree& tree,
                                                    const LoopTree::Loop& loop, size_t k);

// Whether each iteration of an outermost loop writes boxes of its own in all arrays that the loop
// carries, and reads nothing in them that another iteration writes.
bool have_own_parts(const Graph& graph, const LoopTree& tree, const LoopTree::Loop& loop);

// Nodes of all iterations of a loop, but for those that cost nothing.
double expanded_nodes(const Graph& graph, const LoopTree& tree, const LoopTree::Loop& loop);

// Whether the iterations of a loop, which has no loops in it, compute each element from this
// element alone: one kernel can keep in registers what they carry.
bool is_by_element(const Graph& graph, const LoopTree::Loop& loop);

// Whether the iterations of a loop, which has a known number of them and no loops in it, are few
// and compute so much that their operations are better compiled one by one, for all cores.
bool expands_on_cores(const Graph& graph, const LoopTree& tree, const LoopTree::Loop& loop,
                      const Capabilities& caps);

}  // namespace rune::graph
