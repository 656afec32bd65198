// Finds values with which a loop's output begins, and which may be computed in the output's memory.
#pragma once

#include <map>

#include "schedule/schedule.h"

namespace rune::driver {

// The temporaries whose only use is that a loop begins an output with them, and the output of each.
// The item that computes such a temporary may write it to the output's memory. The loop then need
// not copy it.
std::map<schedule::Value, schedule::Value> begun_outputs(const schedule::Schedule& schedule);

}  // namespace rune::driver
