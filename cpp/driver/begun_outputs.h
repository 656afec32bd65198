// Values that begin a loop's result in the result's own memory.
#pragma once

#include <map>

#include "schedule/schedule.h"

namespace rune::driver {

// The temporaries that items compute only for a loop to begin an output with: by temporary, the
// output. What computes the temporary may write it to the output's memory; the loop then need not
// copy it.
std::map<schedule::Value, schedule::Value> begun_outputs(const schedule::Schedule& schedule);

}  // namespace rune::driver
