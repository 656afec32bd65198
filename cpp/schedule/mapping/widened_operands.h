// Operands of contractions on cores that are widened once, before the loops that read them.
#pragma once

#include "schedule/schedule.h"
#include "types/capabilities.h"

namespace rune::schedule {

// Lets a mapped kernel, or phase of the kernel `around`, keep the widened elements of its
// contraction's float16 and bfloat16 operands in scratch memory, if its loops read them several
// times and they fit in a cache. Without this, every read would widen the element again. Does
// nothing to a kernel whose operands are packed, which widens them as it packs.
void keep_widened_operands(const Graph& graph, const Capabilities& caps, Kernel& kernel,
                           const Kernel* around);

}  // namespace rune::schedule
