// Searches the values from which other values are computed.
#pragma once

#include <unordered_set>
#include <vector>

#include "graph/node.h"

namespace rune::graph {

// Calls `visit` once for each of the values in `open`, and for each operand of a visited value for
// which `visit` returns true. The order is not specified. `G` is a Graph or a Builder.
template <class G, class Visit>
void search(const G& graph, std::vector<Value> open, Visit visit) {
  std::unordered_set<uint32_t> seen;
  while (!open.empty()) {
    const Value v = open.back();
    open.pop_back();
    if (!seen.insert(v.id).second || !visit(v)) continue;
    const std::vector<Value>& inputs = graph[v].inputs;
    open.insert(open.end(), inputs.begin(), inputs.end());
  }
}

}  // namespace rune::graph
