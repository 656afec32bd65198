// Reductions whose elements the workgroups of a launch share.
#pragma once

#include <optional>
#include <vector>

#include "schedule/schedule.h"
#include "types/capabilities.h"

namespace rune::schedule {

// Whether a reduction from one shape to another has so many elements and so few results that some
// of the device would have nothing to do if each result were one workgroup's.
bool leaves_device_idle(const Shape& from, const Shape& to, const Capabilities& caps);

// Into how many parts a device of many threads best splits such a reduction.
int64_t parts_of_grid(const Capabilities& caps);

// Whether workgroups may combine partial results by an atomic operation that the device has: on a
// device of many threads, where the order does not matter, as of integers, which wrap, and of
// extremes. It does of sums of floats: their error would differ from run to run.
bool combines_atomically(ReduceOp op, DType dtype, const Capabilities& caps);

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

// Sets that plan.
void plan_grid_reductions(Schedule& schedule);

}  // namespace rune::schedule
