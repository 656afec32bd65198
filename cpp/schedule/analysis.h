// What a kernel costs: arithmetic, bytes, time.
#pragma once

#include "schedule/iteration.h"

namespace rune::schedule {

// The analysis of a kernel whose axes and stages are set (item_id and occupancy are the caller's).
// flops: scalar operations of one run, a multiply-add counting two and exp one; elements computed
// again in a loop count again. bytes: each distinct element read or written once.
ItemAnalysis analyze(const Graph& graph, const Capabilities& caps, const Kernel& kernel);

// Accumulators of a thread, which are more once the kernel is mapped.
int64_t registers_per_thread(const Kernel& kernel);

// Of a call to the host: its bytes, and the time to move them.
ItemAnalysis analyze(const Capabilities& caps, const Host_Callback& callback);

// The longest chain of dependent items by est_ns; sets critical_path and estimated_runtime_ns.
void find_critical_path(Schedule& schedule);

}  // namespace rune::schedule
