// The Scheduled IR: which kernels run, in what order, over which iteration spaces and buffers.
#pragma once

#include <string>
#include <vector>

#include "graph/node.h"
#include "symbolic/expr.h"

namespace rune::schedule {

struct Schedule {};  // completed by the scheduler's author

}  // namespace rune::schedule
