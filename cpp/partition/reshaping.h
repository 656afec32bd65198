// Boxes and chunks of reshaped arrays.
#pragma once

#include <vector>

#include "partition/box.h"

namespace rune::partition {

// Axes of the operand and of the result of a reshape that have the same elements: the operand's
// [from, from_end), the result's [to, to_end).
struct AxisGroup {
  size_t from, from_end, to, to_end;
};

// The smallest groups, in order, of a reshape of an array that has elements.
std::vector<AxisGroup> axis_groups(const Ints& from, const Ints& to);

// How a box of the result follows from a box of the operand. Row-major positions that lie one after
// another in the result do so in the operand: `operand` holds the run of elements that begins at
// `offsets` (by group) and has the sizes `wide`, which contains the box.
struct Reshaping {
  Box operand;
  Box wide;      // of the result
  Ints offsets;  // in elements of the operand's box, by group
};

// Of a box that is not empty.
Reshaping reshaping_of(const Ints& from, const Ints& to, const Box& box);

// The chunks of the result: those of the outermost axis of each group, as far as the result's
// outermost axis has elements where they end. Blocks need the group's inner axes as a whole.
Chunks reshaped_chunks(const Ints& from, const Ints& to, const Chunks& chunks);

}  // namespace rune::partition
