// The pass `plan_memory`: places temporaries in one arena, by their lifetimes.
#pragma once

#include "schedule/schedule.h"

namespace rune::schedule {

// Sets the allocations, arena_bytes and total_memory_usage. Buffers by decreasing size, each at the
// lowest offset free over its lifetime; of very many, in order of their first use, each in the
// smallest free block.
Schedule plan_memory(Schedule schedule);

}  // namespace rune::schedule
