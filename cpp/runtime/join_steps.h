// Lets a device run several steps of a program as one.
#pragma once

#include <vector>

#include "runtime/executable.h"

namespace rune::runtime {

// Makes sequences of steps without others between them, and of iterations of loops that are no part
// of one. The steps are those of a program on one device.
std::vector<Step> join_steps(std::vector<Step> steps, Device& device);

}  // namespace rune::runtime
