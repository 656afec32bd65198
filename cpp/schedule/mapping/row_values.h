// Keeps values of a row that a later stage needs again.
#pragma once

#include "schedule/analysis/accesses.h"

namespace rune::schedule {

// For a mapped kernel whose workgroups process one outer point at a time: makes a Reduce stage keep
// the values that it reduces in scratch memory for later stages over the same elements, if
// computing them again takes longer than a store and a load.
void keep_row_values(const Graph& graph, const Capabilities& caps, Kernel& kernel);

}  // namespace rune::schedule
