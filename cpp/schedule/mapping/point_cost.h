// The cost of computing a point of a stage on a core: throughput, latency and registers. It decides
// how many independent copies of a loop's body to interleave.
#pragma once

#include <optional>

#include "schedule/analysis/accesses.h"
#include "types/capabilities.h"

namespace rune::schedule {

struct PointCost {
  double operations = 0;  // simple operations, see node_operations
  double loads = 0;       // of elements of the kernel's inputs
  double depth = 0;       // the length of the longest chain of dependent operations
  double registers = 0;   // vector registers of `lanes` lanes that hold values at the same time
};

// `count` adjacent points along an axis that are computed together, each with `vectors`
// neighbouring vectors.
struct Block {
  int64_t axis = 0;
  int64_t count = 1;
  int64_t vectors = 1;
};

// The cost of a point, or of all points of a block, which share common loads and operations.
PointCost point_cost(const graph::Graph& graph, const Kernel& kernel, const Stage& stage,
                     const Capabilities& caps, int64_t lanes,
                     const std::optional<Block>& block = std::nullopt);

// The block of points along one of the `axes` (not the axis of the lanes) whose shared loads and
// operations save a core the most time (unroll-and-jam of that axis's loop). Returns nothing if no
// block saves enough, or if the shared values do not fit the registers.
std::optional<Block> jammed_block(const graph::Graph& graph, const Kernel& kernel,
                                  const Stage& stage, const Capabilities& caps, int64_t lanes,
                                  const Ints& axes);

// The number of copies of a loop's body to interleave, so that they hide the latency of its
// operations and their values fit the registers; at least 1. The loop carries no values between
// iterations.
int64_t interleaved_copies(const PointCost& cost, const Capabilities& caps);

}  // namespace rune::schedule
