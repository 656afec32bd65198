// Finds the boxes and chunks of reshaped arrays.
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

// How a box of a reshape's result follows from a box of its operand. Elements that follow one
// another in row-major order do so in both. In each group, `operand` contains the run of elements
// that begins at `offsets`; as a box of the result this run is `wide`, which contains the wanted
// box.
struct Reshaping {
  Box operand;
  Box wide;      // of the result
  Ints offsets;  // in elements of the operand's box, by group
};

// `box` must not be empty.
Reshaping reshaping_of(const Ints& from, const Ints& to, const Box& box);

// The chunks of the result. Along the outermost axis of each group they are the operand's, as far
// as their ends fall between elements of the result's axis. Along the group's inner axes there is
// one chunk.
Chunks reshaped_chunks(const Ints& from, const Ints& to, const Chunks& chunks);

}  // namespace rune::partition
