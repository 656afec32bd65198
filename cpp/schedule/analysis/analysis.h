// What a kernel costs: arithmetic, bytes, time.
#pragma once

#include "schedule/analysis/accesses.h"

namespace rune::schedule {

// The analysis of a kernel whose axes and stages are set: before the mapping as if vectors were
// full and all cores busy, and after it as mapped. flops: scalar operations of one run, a
// multiply-add counting two and exp one; elements computed again in a loop count again. bytes: each
// distinct element read or written once.
ItemAnalysis analyze(const Graph& graph, const Capabilities& caps, const Kernel& kernel);

// The pass `analyze`: the costs of each item, and the critical path.
Schedule analyze_items(Schedule schedule, const Capabilities& caps);

}  // namespace rune::schedule
