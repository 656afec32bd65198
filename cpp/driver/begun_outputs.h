// Finds initial values of a loop's outputs that may be computed in the output's memory.
#pragma once

#include <map>

#include "schedule/schedule.h"

namespace rune::driver {

// The temporaries that are used only as the initial value of a loop's output, and the output of
// each. The item that computes such a temporary may write it to the output's memory, so that the
// loop need not copy it.
std::map<schedule::Value, schedule::Value> begun_outputs(const schedule::Schedule& schedule);

}  // namespace rune::driver
