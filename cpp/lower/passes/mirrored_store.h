// Stores results that are symmetric in two axes, of which half is computed.
#pragma once

#include "lower/passes/kernel_context.h"

namespace rune::lower {

// Stores the points with row >= column, and those with row > column at their mirror images, too.
// Points of one column in neighbouring rows are stored together, as vectors of the image's rows.
void store_mirrored(KernelContext& context, const schedule::Stage& stage,
                    const schedule::StageValue& value, const Points& points,
                    std::vector<MemoryEmitter::Element> elements, const schedule::Mirror& mirror);

}  // namespace rune::lower
