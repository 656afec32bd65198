// Which values a kernel must compute as such, rather than where they are used.
#pragma once

#include <vector>

#include "schedule/fusion/split_kernels.h"
#include "schedule/indexing/demand.h"
#include "types/capabilities.h"

namespace rune::schedule {

// How a root reads another value that lives in memory or is itself a root.
struct Use {
  graph::Value value;
  // None of a host callback, which reads all of it.
  std::vector<Demand>
      demands;  // variable i < rank is dimension i of the root, rank + j its reduced axis j
};

struct Roots {
  std::vector<bool> is_root;
  std::vector<std::vector<Use>> uses;  // by root's id: roots and memory that it reads
  std::vector<bool> by_parts;          // by node: a Cat that kernels store part by part
  std::vector<int64_t> num_nodes;      // by root's id: nodes computed for it
};

// Outputs, reductions, explicit stores, host callbacks and what these read are roots; so is a value
// that would be computed so often anew that storing it is cheaper, by the cost model.
Roots find_roots(const graph::Graph& graph, const std::vector<graph::Value>& outputs,
                 const Capabilities& caps);

}  // namespace rune::schedule
