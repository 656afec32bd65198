// The pass `plan_memory`: places temporaries in one arena, by their lifetimes.
#pragma once

#include "schedule/schedule.h"

namespace rune::schedule {

// Sets the allocations, arena_bytes and total_memory_usage. Places buffers by decreasing size, each
// at the lowest offset that is free over its lifetime. Very many buffers are placed in the order of
// their first use instead, each in the smallest free block.
Schedule plan_memory(Schedule schedule);

}  // namespace rune::schedule
