// Deals a workgroup's rectangle of two axes to its threads.
#pragma once

#include <functional>

#include "lower/passes/kernel_context.h"

namespace rune::lower {

// Each workgroup computes a rectangle of two axes, patch by patch of a SIMD-group, or a square and
// its mirror image; a rectangle that reaches beyond the axes' ends, piece by piece. A piece is what
// a thread has of a patch. `run_stages` is called for the points that a thread computes at once.
// `start` has no axis of the kernel's.
void deal_squares(KernelContext& context, const Point& start,
                  const std::function<void(const Points&)>& run_stages);

}  // namespace rune::lower
