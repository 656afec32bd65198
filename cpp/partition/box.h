// Boxes of an array's elements.
#pragma once

#include <utility>
#include <vector>

#include "base/text.h"
#include "types/shape.h"

namespace rune::partition {

// A box: the elements [first, second) along each axis.
using Box = std::vector<std::pair<int64_t, int64_t>>;

// All elements of an array of these sizes.
Box whole(const Ints& sizes);
Ints sizes_of(const Box& box);
// The number of elements. Saturates at the greatest int64.
int64_t volume(const Box& box);
bool is_empty(const Box& box);
bool contains(const Box& outer, const Box& inner);

// Adds a box to the needed boxes of a value. Boxes are merged if the box around them has few
// further elements, so that elements in several boxes are computed once. At most a few boxes
// remain.
void add_box(std::vector<Box>& boxes, Box box);

// The chunks into which an array is divided: for each axis, their sizes in order. An axis of one
// chunk is whole. A chunk is empty only if its axis has no elements.
using Chunks = std::vector<Ints>;

Chunks one_chunk(const Ints& sizes);
// The ends of the chunks of an axis. The last end is the size of the axis.
Ints ends_of(const Ints& chunks);
// The chunks that have these ends, in ascending order; equal ends count once.
Ints chunks_between(const Ints& ends);

}  // namespace rune::partition
