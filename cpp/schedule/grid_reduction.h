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
// partial results into its buffer by atomic operations (the plan Atomic). A kernel before that one
// fills the buffer with the reduction's identity, since no order of the groups says which is first.
bool reduces_atomically(const Graph& graph, Value v, const Capabilities& caps);

// Whether the kernel brings the value into a buffer that an earlier one has begun.
bool begins_earlier(const Kernel& kernel, Value v);

// By node: the reduction by the same operation that alone uses the node's results, if there is one;
// these are then partial results.
std::vector<std::optional<Value>> completing_reductions(const Graph& graph);

// Whether all reductions of a kernel are completed by other kernels, as the plan GridReduce says.
bool is_completed_elsewhere(const Kernel& kernel,
                            const std::vector<std::optional<Value>>& completing);

// Whether a stage of the kernel reduces both deviations and their squares: the second moment about
// the exact mean follows, and moments of parts merge without loss (the plan Welford).
bool reduces_moments(const Graph& graph, const Kernel& kernel);

// Sets the plan GridReduce for such kernels.
void plan_grid_reductions(Schedule& schedule);

}  // namespace rune::schedule
