// Checks a schedule's invariants.
#pragma once

#include <string>
#include <vector>

#include "schedule/schedule.h"

namespace rune::schedule {

// Returns every violation, each with the item that it is in; empty if the schedule is valid. Checks
// that axes have sizes, are mapped once, and have tiles that match; that hints and plans are for
// axes and values that exist; that the positions which stages store cover their values; that every
// buffer is written once, before it is read; that the memory plan covers all uses, and that no
// two temporaries overlap while both live; that dependencies are complete and without cycles; that
// all outputs are written; and that there is an analysis of each item.
std::vector<std::string> verify(const Schedule& schedule);

}  // namespace rune::schedule
