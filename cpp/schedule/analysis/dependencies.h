// The pass `find_dependencies`: which item waits for which.
#pragma once

#include "schedule/schedule.h"

namespace rune::schedule {

// Sets the dependencies between the items.
Schedule find_dependencies(Schedule schedule);

}  // namespace rune::schedule
