// Finds the boxes and chunks of reshaped arrays.
#pragma once

#include <vector>

#include "partition/box.h"

namespace rune::partition {

// A group of axes of a reshape's operand, [from, from_end), and of its result, [to, to_end), that
// have the same number of elements.
struct AxisGroup {
  size_t from, from_end, to, to_end;
};

// The smallest groups of a reshape, in order. The array must have elements.
std::vector<AxisGroup> axis_groups(const Ints& from, const Ints& to);

// How to get a box of a reshape's result from a box of its operand. A run of elements that are
// consecutive in row-major order is consecutive in both. In each group, `operand` contains the run
// that begins at `offsets`. In the result, this run is the box `wide`, which contains the wanted
// box.
struct Reshaping {
  Box operand;
  Box wide;      // of the result
  Ints offsets;  // in elements of the operand's box, by group
};

// Finds the reshaping for a box of the result, which must not be empty.
Reshaping reshaping_of(const Ints& from, const Ints& to, const Box& box);

// The chunks of the result. Along the outermost axis of each group, they end where the operand's
// chunks end, rounded down to an index of that axis. Along the group's inner axes there is one
// chunk.
Chunks reshaped_chunks(const Ints& from, const Ints& to, const Chunks& chunks);

}  // namespace rune::partition
