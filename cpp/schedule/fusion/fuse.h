// Decides which values are stored in memory and which are computed together in one kernel.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "schedule/fusion/cat_parts.h"
#include "schedule/fusion/uses.h"
#include "schedule/schedule.h"

namespace rune::schedule {

// Values that one kernel, or one host call, computes. At each point of the outer axes, a kernel
// computes reductions over their reduced axes, and maps over their inner axes.
struct Cluster {
  std::vector<Value> values;  // ascending
  Shape outer;                // sizes of the outer axes
  // For each value, the outer axis of each of its dimensions; -1 for an inner or reduced axis and
  // for dimensions of size 1.
  std::map<uint32_t, std::vector<int>> axes;
  int num_fixed = 0;              // the number of leading outer axes that must not be merged
  std::vector<CatPart> parts;     // of a Cat, if a separate kernel stores each part
  int64_t length = 0;             // the number of nodes that it computes (Uses::length)
  bool stores_beginning = false;  // a Scatter's kernel also stores its initial contents
  // For a reduction whose workgroups combine atomically, the reduced axis that they share.
  std::optional<size_t> axis_of_groups;
};

struct Fusion {
  std::vector<Cluster> clusters;  // in an order in which they can run
  Uses uses;
  std::vector<bool> is_stored;  // by node: materialized, in a buffer that other kernels read
  std::vector<FusionOpportunity> opportunities;
};

// `outputs` must be stored. Begins with one kernel for each reduction and each stored value. All
// other values are computed where they are used, unless storing them is cheaper. Then merges
// producers into consumers, and siblings that read the same data.
Fusion fuse(const Graph& graph, const std::vector<Value>& outputs, const Capabilities& caps);

}  // namespace rune::schedule
