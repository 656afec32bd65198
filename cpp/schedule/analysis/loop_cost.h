// Estimates the costs of loops.
#pragma once

#include "schedule/schedule.h"

namespace rune::schedule {

// The flops of all iterations, the bytes of the operands and results, and the time on one core. A
// size that depends on counters counts as the mean of its least and its greatest value.
ItemAnalysis analyze_loops(const Graph& graph, const Capabilities& caps, const Loop_Nest& item);

// The expected number of iterations of a loop over Python's range(start, stop, step): the mean of
// the least and the greatest number. It is a guess for a loop that a condition may end.
double mean_trips(const Dim& start, const Dim& stop, int64_t step, bool may_end);

}  // namespace rune::schedule
