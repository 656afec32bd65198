// Decides which values are materialized, that is, computed by one kernel instead of where they are
// used.
#pragma once

#include <map>
#include <vector>

#include "schedule/analysis/library_product.h"
#include "schedule/fusion/uses.h"
#include "types/capabilities.h"

namespace rune::schedule {

// Decides which values are materialized, and finds their uses. These are outputs, reductions,
// explicit stores, host calls and their operands, and the operands and results of library products.
// A value that would be computed many times is materialized if that is cheaper by the cost model.
struct Materialized {
  Uses uses;
  std::map<uint32_t, LibraryProduct> products;  // by id of a Contract
};
Materialized materialize(const graph::Graph& graph, const std::vector<graph::Value>& outputs,
                         const Capabilities& caps);

}  // namespace rune::schedule
