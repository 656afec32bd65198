// What computing one point of a stage asks of a core: throughput, latency and registers. Decides
// how many independent copies of a loop's body are worth interleaving.
#pragma once

#include "schedule/iteration.h"
#include "types/capabilities.h"

namespace rune::schedule {

struct PointCost {
  double operations = 0;  // simple operations, see node_operations
  double depth = 0;       // of the longest chain of operations that wait for each other
  double registers = 0;   // vector registers that hold values at once, with `lanes` a vector
};

PointCost point_cost(const graph::Graph& graph, const Kernel& kernel, const Stage& stage,
                     const Capabilities& caps, int64_t lanes);

// Copies of a loop's body, without values carried from one iteration to the next, that hide the
// latency of its operations and whose values fit the registers; at least 1.
int64_t interleaved_copies(const PointCost& cost, const Capabilities& caps);

}  // namespace rune::schedule
