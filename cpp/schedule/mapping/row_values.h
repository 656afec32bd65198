// Keeps values of a row that a later stage needs again.
#pragma once

#include "schedule/analysis/accesses.h"

namespace rune::schedule {

// Lets a Reduce stage keep the values that it reduces in scratch memory, for later stages over the
// same elements, if computing them again takes longer than a store and a load. The kernel is
// mapped, and its workgroups process one outer point at a time.
void keep_row_values(const Graph& graph, const Capabilities& caps, Kernel& kernel);

}  // namespace rune::schedule
