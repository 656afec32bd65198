// What loops cost.
#pragma once

#include "schedule/schedule.h"

namespace rune::schedule {

// Flops of all iterations, bytes of the operands and results, and the time on one core. Of sizes in
// terms of counters, the mean of the least and the greatest counts.
ItemAnalysis analyze_loops(const Graph& graph, const Capabilities& caps, const Loop_Nest& item);

}  // namespace rune::schedule
