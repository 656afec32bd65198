// Finds reductions that several workgroups share.
#pragma once

#include <optional>

#include "schedule/schedule.h"
#include "types/capabilities.h"

namespace rune::schedule {

// The reduced axis whose points are divided among workgroups, one point each, if their results are
// combined atomically. It is the outermost axis that has a point for each core and leaves enough
// work for each workgroup.
std::optional<size_t> axis_of_groups(const Shape& reduced, const Capabilities& caps);

// Whether the value is a reduction with a separate kernel whose workgroups combine their partial
// results in its buffer by atomic operations. An earlier kernel fills the buffer with the
// reduction's identity, since workgroups run in no particular order.
bool reduces_atomically(const Graph& graph, Value v, const Capabilities& caps);

// Whether the kernel updates a buffer of the value, and an earlier kernel stored the buffer's
// initial contents.
bool begins_earlier(const Kernel& kernel, Value v);

}  // namespace rune::schedule
