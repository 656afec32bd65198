// Stores results that are symmetric in two axes, so that only half of them is computed.
#pragma once

#include "lower/passes/kernel_context.h"

namespace rune::lower {

// Stores the points with row >= column, and stores those with row > column also at their mirror
// images. Points of one column in neighbouring rows are stored together there, as vectors.
void store_mirrored(KernelContext& context, const schedule::Stage& stage,
                    const schedule::StageValue& value, const Points& points,
                    std::vector<MemoryEmitter::Element> elements, const schedule::Mirror& mirror);

}  // namespace rune::lower
