// What loops cost.
#pragma once

#include "schedule/schedule.h"

namespace rune::schedule {

// Flops of all iterations, bytes of the operands and results, and the time on one core. Of sizes in
// terms of counters, the mean of the least and the greatest counts.
ItemAnalysis analyze_loops(const Graph& graph, const Capabilities& caps, const Loop_Nest& item);

// How often the body of a loop over Python's range(start, stop, step) runs, halfway between the
// fewest and the most times; of a loop that a condition may end, a guess.
double mean_trips(const Dim& start, const Dim& stop, int64_t step, bool may_end);

}  // namespace rune::schedule
