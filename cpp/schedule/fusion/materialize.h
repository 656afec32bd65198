// Which values are materialized: computed as such by some kernel, rather than where they are used.
#pragma once

#include <vector>

#include "schedule/fusion/uses.h"
#include "types/capabilities.h"

namespace rune::schedule {

// Decides what is materialized, and returns the uses of it. Outputs, reductions, explicit stores,
// calls to the host and what these read are materialized; so is a value that would be computed so
// often that storing it is cheaper, by the cost model.
Uses materialize(const graph::Graph& graph, const std::vector<graph::Value>& outputs,
                 const Capabilities& caps);

}  // namespace rune::schedule
