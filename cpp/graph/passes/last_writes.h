// The boxes that the iterations of a loop write to an array, as one value.
#pragma once

#include <optional>
#include <vector>

#include "graph/builder.h"
#include "graph/passes/iterations.h"
#include "graph/passes/lift_iterations.h"

namespace rune::graph {

// What one Update of all iterations writes. No element is written twice.
struct Boxes {
  Value all;                 // each element's value
  Value written;             // whether it is written, of the same shape; no value: all are
  std::vector<Dim> offsets;  // of `all` in the array
  // Along this axis lie the iterations, each of which has `size` elements of it.
  int64_t axis = 0, size = 1;
  bool is_backwards = false;
  Dim count;
};

// `part`, which has the axis of iterations, is what the update writes. Nothing if the boxes fill
// too little of the memory between them, or are at no fixed place in `part`.
std::optional<Boxes> boxes_of_all(Builder& builder, const Graph& graph,
                                  const Iterations& iterations, const Write& write,
                                  const Lifted& part);

// The target after the writes.
Value write_boxes(Builder& builder, const Boxes& boxes, Value target);

// The target after the iterations, each of which does all writes, in order: of those that write an
// element the last one of the last iteration counts. Nothing where sizes are symbolic, an iteration
// has several elements of an axis, or the boxes are small parts of the target.
std::optional<Value> write_last(Builder& builder, std::vector<Boxes> writes, Value target);

}  // namespace rune::graph
