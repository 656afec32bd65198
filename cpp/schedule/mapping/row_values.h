// Values of a row that one stage computes and a later one needs again.
#pragma once

#include "schedule/analysis/accesses.h"

namespace rune::schedule {

// For a mapped kernel whose workgroups take one outer point at a time: lets a Reduce stage keep
// what it reduces in scratch memory, for later stages over the same elements, where computing it
// again takes longer than a store and a load.
void keep_row_values(const Graph& graph, const Capabilities& caps, Kernel& kernel);

}  // namespace rune::schedule
