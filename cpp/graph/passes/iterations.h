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
  // The growth of the size from one iteration to the next; nothing if it is not constant.
  std::optional<int64_t> growth(const Dim& size) const;
  // The least or the greatest value of a size that grows by `growth`.
  Dim extreme(const Dim& size, int64_t growth, bool is_least) const;
  // The least `low` and the greatest `high` of all iterations; nothing if the growth of one of them
  // is not constant.
  std::optional<std::pair<Dim, Dim>> hull(const Dim& low, const Dim& high) const;
};

// An Update of a carried array. Each iteration writes a box of its own. The boxes lie side by side
// along `axis`. Their limits along other axes may depend on the counter.
struct Write {
  Value update;
  int64_t axis = 0;
  Dim offset;          // of the box, along the axis
  int64_t size = 0;    // of the box, along the axis
  int64_t stride = 0;  // from the box of one iteration to that of the next: size or -size
  Ints windows;        // the other axes along which the box depends on the counter

  // Nothing if the Update is no such Write.
  static std::optional<Write> of(const Graph& graph, const Iterations& iterations, Value update);
};

// The boxes of a carried array that an iteration replaces, one after the other.
struct Writes {
  std::vector<Write> boxes;  // in order
  // Whether all boxes of an iteration lie between the same limits of one axis, and no other
  // iteration writes between these.
  bool share_axis = true;

  // Adds the last update. Returns false if it is no Write.
  bool add(const Graph& graph, const Iterations& iterations, Value update);
  // Whether a part of the array lies between those limits.
  bool own(const Shrink& part) const;
  // Whether an iteration that reads this part of the array after `count` of its writes finds the
  // elements from before the loop, since neither it nor an earlier iteration has written there.
  bool leave(const Graph& graph, const Iterations& iterations, const Shrink& part,
             size_t count) const;
};

// All values of carried array number k during an iteration: its Carry, Updates and Loop_Results,
// including those of inner loops. Nothing if the array changes in another way than by Updates.
std::optional<std::vector<Value>> values_of_updated(const Graph& graph, const LoopTree& tree,
                                                    const LoopTree::Loop& loop, size_t k);

// Whether each iteration of an outermost loop writes boxes of its own in all carried arrays, and
// reads nothing in them that another iteration writes.
bool have_own_parts(const Graph& graph, const LoopTree& tree, const LoopTree::Loop& loop);

// The number of nodes of all iterations of a loop, without those that cost nothing.
double expanded_nodes(const Graph& graph, const LoopTree& tree, const LoopTree::Loop& loop);

// Whether the iterations of a loop without inner loops compute each element from the same element
// alone, so that one kernel can keep the carried values in registers.
bool is_by_element(const Graph& graph, const LoopTree::Loop& loop);

// Whether a loop should be unrolled: its iterations are few, and compute so much that their
// operations are better compiled one by one, for all cores. The loop has no inner loops and a known
// number of iterations.
bool expands_on_cores(const Graph& graph, const LoopTree& tree, const LoopTree::Loop& loop,
                      const Capabilities& caps);

}  // namespace rune::graph
