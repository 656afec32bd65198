// Lets a device run several steps of a program as one.
#pragma once

#include <vector>

#include "runtime/executable.h"

namespace rune::runtime {

// Joins consecutive steps to sequences. Loops that cannot be part of a sequence get sequences of
// some of their iterations. The steps are those of a program on one device.
std::vector<Step> join_steps(std::vector<Step> steps, Device& device);

}  // namespace rune::runtime
