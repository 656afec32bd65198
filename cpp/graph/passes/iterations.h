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

  // Those of a loop that no condition ends, and of whose bounds constants and the counters of other
  // loops decide; nothing for another loop.
  static std::optional<Iterations> of(const Graph& graph, const LoopTree& tree, Value end);

  bool decide(const Dim& size) const { return size.depends_on(counter.name); }
  // The size in an iteration.
  Dim at(const Dim& number, const Dim& size) const;
  // By how much the size grows from an iteration to the next one; nothing if that is no constant.
  std::optional<int64_t> growth(const Dim& size) const;
  // The least, or else the greatest value of a size that grows by so much.
  Dim extreme(const Dim& size, int64_t growth, bool is_least) const;
  // The least lower and the greatest upper limit of all iterations; nothing if one does not grow by
  // a constant.
  std::optional<std::pair<Dim, Dim>> hull(const Dim& low, const Dim& high) const;
};

// An Update of a carried array of which each iteration writes a box of its own: the boxes lie side
// by side along one axis. Along other axes the counter may decide their limits.
struct Write {
  Value update;
  int64_t axis = 0;
  Dim offset;          // of the box, along the axis
  int64_t size = 0;    // of the box, along the axis
  int64_t stride = 0;  // from an iteration's box to that of the next one: size or -size
  Ints windows;        // the other axes along which the counter decides the box

  // Nothing for another Update.
  static std::optional<Write> of(const Graph& graph, const Iterations& iterations, Value update);
};

// What an iteration does to a carried array: it replaces one box after the other.
struct Writes {
  std::vector<Write> boxes;  // in order
  // Whether all boxes of an iteration are between the same limits of one axis, which no other
  // iteration touches.
  bool share_axis = true;

  // Adds the last update. Returns false if it is no Write.
  bool add(const Graph& graph, const Iterations& iterations, Value update);
  // Whether the part of the array is between those limits.
  bool own(const Shrink& part) const;
  // Whether an iteration that reads this part of the array, after so many of its own writes, finds
  // what was there before the loop: no iteration before it, nor itself, has written there.
  bool leave(const Graph& graph, const Iterations& iterations, const Shrink& part,
             size_t count) const;
};

// The values in an iteration of the array that the loop carries as number k, if nothing but Updates
// change it, also those of loops in the loop: the Carry, Updates and Loop_Results. Nothing for what
// is replaced otherwise.
std::optional<std::vector<Value>> values_of_updated(const Graph& graph, const LoopTree& tree,
                                                    const LoopTree::Loop& loop, size_t k);

// Whether each iteration of the loop, which is in no other, writes boxes of its own of all arrays
// that the loop carries, and reads of these nothing that another one writes.
bool have_own_parts(const Graph& graph, const LoopTree& tree, const LoopTree::Loop& loop);

// Nodes of all iterations of a loop, but for those that cost nothing.
double expanded_nodes(const Graph& graph, const LoopTree& tree, const LoopTree::Loop& loop);

}  // namespace rune::graph
