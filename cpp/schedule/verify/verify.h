// Checks a schedule's invariants.
#pragma once

#include <string>
#include <vector>

#include "schedule/schedule.h"

namespace rune::schedule {

// Every violation, each naming its item: axes without size or mapped twice, tiles that do not match
// the axes, a hint or plan for an axis that does not exist, stage values whose strides leave the
// value or do not reach all of it, a buffer read before an earlier item wrote it, written twice, or
// missing from the kernel that names it, lifetimes that do not cover all uses, temporaries that
// overlap in the arena while both live, dependencies that are missing, doubled or cyclic, outputs
// that nothing writes, and an analysis that does not match the items. Empty if the schedule is
// valid.
std::vector<std::string> verify(const Schedule& schedule);

}  // namespace rune::schedule
