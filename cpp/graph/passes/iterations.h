// The iterations of a loop, and the boxes of arrays that they write.
#pragma once

#include <cstdint>
#include <optional>
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
};

// What an iteration does to a carried array: it replaces one box after the other, all of them
// between the same limits of one axis, which no other iteration touches.
struct Writes {
  std::vector<Value> updates;  // in order
  int64_t axis = 0;
  Dim offset;          // of the boxes, along the axis
  int64_t size = 0;    // of the boxes, along the axis
  int64_t stride = 0;  // from an iteration's boxes to those of the next one: size or -size

  // Adds the last update. Returns false if it is no such write.
  bool add(const Graph& graph, const Iterations& iterations, Value update);
  // Whether an iteration may read this part of the array, and finds there what it has written
  // itself, or what no iteration writes.
  bool leave_to_one(const Graph& graph, const Iterations& iterations, const Shrink& part) const;
};

}  // namespace rune::graph
