// The pass `find_dependencies`: finds the items that each item waits for.
#pragma once

#include "schedule/schedule.h"

namespace rune::schedule {

// Sets the dependencies between the items.
Schedule find_dependencies(Schedule schedule);

}  // namespace rune::schedule
