// What a kernel costs: arithmetic, bytes, time.
#pragma once

#include "schedule/analysis/accesses.h"

namespace rune::schedule {

// The analysis of a kernel whose axes and stages are set (item_id is the caller's): before the
// mapping as if vectors were full and all cores busy, and after it as mapped.
// flops: scalar operations of one run, a multiply-add counting two and exp one; elements computed
// again in a loop count again. bytes: each distinct element read or written once.
ItemAnalysis analyze(const Graph& graph, const Capabilities& caps, const Kernel& kernel);

// Of a call to the host and of a transfer: their bytes, and the time to move them.
ItemAnalysis analyze(const Capabilities& caps, const Host_Callback& callback);
ItemAnalysis analyze(const Capabilities& caps, const Memory_Transfer& transfer);

// The pass `analyze`: the costs of each item, and the critical path.
Schedule analyze_items(Schedule schedule, const Capabilities& caps);

}  // namespace rune::schedule
