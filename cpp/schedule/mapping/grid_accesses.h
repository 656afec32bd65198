// Finds out how the threads of a kernel on a grid can access memory.
#pragma once

#include <utility>

#include "schedule/mapping/mapping_state.h"

namespace rune::schedule {

// Whether the kernel reads elements whose positions are data.
bool gathers(const MappingState& state);

// The number of aligned neighbours along the axis that one access can load or store: a power of two
// of at most `most`. It is `most` if the access does not depend on the axis.
int64_t neighbours(const MappingState& state, const MemoryAccess& access, int64_t axis,
                   int64_t most);

// The number of neighbours in a row that a thread can access at once; 1 if there are none. All
// accesses along the threads' axes must be of aligned neighbours, and each thread must have as
// many. The threads of a point are set.
int64_t lanes_of_rows(const MappingState& state);

// Whether squares of the two axes and their mirror images read the same elements of an array, and
// no cache would hold these until their second use.
bool reads_mirror_images(const MappingState& state, const std::pair<int64_t, int64_t>& axes);

}  // namespace rune::schedule
