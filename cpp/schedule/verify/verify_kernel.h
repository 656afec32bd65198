// The part of verification that looks at one kernel. Private to verify.cpp.
#pragma once

#include <string>
#include <vector>

#include "schedule/schedule.h"

namespace rune::schedule::detail {

// Violations inside a kernel, without the item's name. Values of the graph are looked up only after
// they are known to exist.
std::vector<std::string> verify_kernel(const Graph& graph, const Kernel& kernel);

}  // namespace rune::schedule::detail
