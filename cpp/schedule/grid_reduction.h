// Reductions whose elements the workgroups of a launch share.
#pragma once

#include <optional>
#include <vector>

#include "schedule/schedule.h"
#include "types/capabilities.h"

namespace rune::schedule {

// Of the sizes of reduced axes, which one is dealt to workgroups, a point to each, where they
// combine atomically: the outermost that has one for each core and leaves each group enough.
std::optional<size_t> axis_of_groups(const Shape& reduced, const Capabilities& caps);

// Whether the value is a reduction that has a kernel of its own, whose workgroups bring their
// partial results into its buffer by atomic operations. A kernel before that one
// fills the buffer with the reduction's identity, since no order of the groups says which is first.
bool reduces_atomically(const Graph& graph, Value v, const Capabilities& caps);

// Whether the kernel brings the value into a buffer that an earlier one has begun.
bool begins_earlier(const Kernel& kernel, Value v);

}  // namespace rune::schedule
