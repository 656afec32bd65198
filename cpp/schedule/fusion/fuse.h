// Decides which values are stored in memory and which are computed together in one kernel.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "schedule/cat_parts.h"
#include "schedule/fusion/uses.h"
#include "schedule/schedule.h"

namespace rune::schedule {

// Values computed by one kernel, or by one call to the host. Of a kernel: for every point of the
// outer axes, reductions over axes of their own and maps over the rest of theirs.
struct Cluster {
  std::vector<Value> values;  // ascending
  Shape outer;                // sizes of the outer axes
  // By value: the outer axis of each of its dimensions, or -1 for an inner axis, a reduced one or
  // one of size 1.
  std::map<uint32_t, std::vector<int>> axes;
  int num_fixed = 0;              // the first outer axes, which are not collapsed with others
  std::vector<CatPart> parts;     // of a Cat that is stored by a kernel for each of these
  int64_t num_nodes = 0;          // computed, those shared by several values counted for each
  bool stores_beginning = false;  // of a Scatter: its kernel also stores what it begins with
  // Of a reduction whose workgroups combine atomically: the reduced axis that is dealt to them.
  std::optional<size_t> axis_of_groups;
};

struct Fusion {
  std::vector<Cluster> clusters;  // in an order in which they can run
  Uses uses;
  std::vector<bool> is_stored;  // by node: materialized, in a buffer that other kernels read
  std::vector<FusionOpportunity> opportunities;
  std::vector<SymVar> vars;  // the graph's
};

// `outputs` are values that must be stored. Starts from one kernel a reduction and a stored value,
// with everything else computed where it is used, except where storing is cheaper than computing
// again; then merges producers into consumers and siblings that read the same data.
Fusion fuse(const Graph& graph, const std::vector<Value>& outputs, const Capabilities& caps);

}  // namespace rune::schedule
