// Checks a schedule's invariants.
#pragma once

#include <string>
#include <vector>

#include "schedule/schedule.h"

namespace rune::schedule {

// Returns every violation, each with its item; empty if the schedule is valid. Checks that
// - axes have sizes, are mapped once, and have tiles that match;
// - hints and plans are for axes and values that exist;
// - the positions that stages store cover their values;
// - every buffer is written once, before it is read;
// - the memory plan covers all uses, and no two temporaries overlap while both live;
// - dependencies are complete and have no cycles;
// - all outputs are written;
// - each item has an analysis.
std::vector<std::string> verify(const Schedule& schedule);

}  // namespace rune::schedule
