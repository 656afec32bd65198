// Operands of contractions on cores that are widened once, before the loops that read them.
#pragma once

#include "schedule/schedule.h"
#include "types/capabilities.h"

namespace rune::schedule {

// Lets a mapped kernel, or phase of the kernel `around`, keep the float16 and bfloat16 operands of
// its contraction in scratch memory, in the widened dtype. Without this, every read would widen an
// element again. Does so if loops read the operands several times, and if they fit in a cache. A
// kernel that packs its operands is left unchanged, since it widens them as it packs them.
void keep_widened_operands(const Graph& graph, const Capabilities& caps, Kernel& kernel,
                           const Kernel* around);

}  // namespace rune::schedule
