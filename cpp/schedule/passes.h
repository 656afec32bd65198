// The scheduling passes, in order.
#pragma once

#include "schedule/schedule.h"

namespace rune::schedule {

// Fusion: from a graph after its last pass to items with axes and stages.
Schedule fuse_kernels(Graph graph, const Capabilities& caps);
// Data dependencies between items, and each item's depends_on and dependents.
Schedule find_dependencies(Schedule schedule);
// Costs of each item, the critical path.
Schedule analyze_items(Schedule schedule, const Capabilities& caps);
// Axes to the machine, by the analysis, which is made again for what is mapped.
Schedule map_to_machine(Schedule schedule, const Capabilities& caps);
// Lifetimes and the arena of temporaries.
Schedule plan_memory_of_items(Schedule schedule);

}  // namespace rune::schedule
