// Decides which values are materialized, that is, computed by one kernel instead of where they are
// used.
#pragma once

#include <map>
#include <vector>

#include "schedule/analysis/library_product.h"
#include "schedule/fusion/uses.h"
#include "types/capabilities.h"

namespace rune::schedule {

// Decides which values are materialized, and returns their uses. Outputs, reductions, explicit
// stores, host calls and the operands of host calls are materialized, and operands and results of
// products by a library. So is a value that would be computed so often that the cost model finds
// storing it cheaper.
struct Materialized {
  Uses uses;
  std::map<uint32_t, LibraryProduct> products;  // by Contract
};
Materialized materialize(const graph::Graph& graph, const std::vector<graph::Value>& outputs,
                         const Capabilities& caps);

}  // namespace rune::schedule
