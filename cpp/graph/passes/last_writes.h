// Combines the boxes that the iterations of a loop write to an array into one value.
#pragma once

#include <optional>
#include <vector>

#include "graph/builder.h"
#include "graph/passes/iterations.h"
#include "graph/passes/lift_iterations.h"

namespace rune::graph {

// The boxes that one Update writes in all iterations together. No element is written twice.
struct Boxes {
  Value all;                 // the value of each element
  Value written;             // by element of `all`: whether it is written; no value if all are
  std::vector<Dim> offsets;  // of `all` in the array
  // The iterations lie along this axis. Each has `size` elements of it.
  int64_t axis = 0, size = 1;
  bool is_backwards = false;
  Dim count;
};

// `part` has the axis of iterations and the values that the update writes. Nothing if the boxes
// fill too little of the memory between them, or have no fixed place in `part`.
std::optional<Boxes> boxes_of_all(Builder& builder, const Graph& graph,
                                  const Iterations& iterations, const Write& write,
                                  const Lifted& part);

// The target after the writes.
Value write_boxes(Builder& builder, const Boxes& boxes, Value target);

// The target after iterations that each do all writes, in order. An element gets the last write of
// the last iteration that writes it. Nothing if sizes are symbolic, if an iteration has several
// elements of an axis, or if the boxes are small parts of the target.
std::optional<Value> write_last(Builder& builder, std::vector<Boxes> writes, Value target);

}  // namespace rune::graph
