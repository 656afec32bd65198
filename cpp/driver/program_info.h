// Describes a program's steps for profiles.
#pragma once

#include "runtime/profile.h"
#include "schedule/schedule.h"
#include "types/capabilities.h"

namespace rune::driver {

// Describes an item of the schedule: its name, the user's line, its costs by the cost model, and
// the device's limits for the item's dtype and for data of this size.
runtime::StepInfo step_info(const schedule::Schedule& schedule, const Capabilities& caps,
                            size_t item);

// The user's line of the last operation that has one; empty if none has.
std::string location_of(const schedule::Schedule& schedule, const schedule::Kernel& kernel);

}  // namespace rune::driver
