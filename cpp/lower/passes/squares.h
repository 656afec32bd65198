// Deals a workgroup's rectangle of two axes to its threads.
#pragma once

#include <functional>

#include "lower/passes/kernel_context.h"

namespace rune::lower {

// Each workgroup computes a rectangle of two axes, or a square and its mirror image. A SIMD-group
// computes patches of the rectangle, and each of its threads computes a piece of a patch. If the
// rectangle reaches beyond the ends of the axes, it is computed piece by piece. Calls `run_stages`
// for the points that a thread computes at once. `start` has no fixed axis.
void deal_squares(KernelContext& context, const Point& start,
                  const std::function<void(const Points&)>& run_stages);

}  // namespace rune::lower
