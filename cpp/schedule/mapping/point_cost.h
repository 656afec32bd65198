// What computing one point of a stage asks of a core: throughput, latency and registers. Decides
// how many independent copies of a loop's body are worth interleaving.
#pragma once

#include <optional>

#include "schedule/analysis/accesses.h"
#include "types/capabilities.h"

namespace rune::schedule {

struct PointCost {
  double operations = 0;  // simple operations, see node_operations
  double loads = 0;       // of elements of the kernel's inputs
  double depth = 0;       // of the longest chain of operations that wait for each other
  double registers = 0;   // vector registers that hold values at once, with `lanes` a vector
};

// `count` points next to each other along an axis, computed together.
struct Block {
  int64_t axis = 0;
  int64_t count = 1;
};

// Of one point; or of all of a block, which share what more than one of them needs.
PointCost point_cost(const graph::Graph& graph, const Kernel& kernel, const Stage& stage,
                     const Capabilities& caps, int64_t lanes,
                     const std::optional<Block>& block = std::nullopt);

// The block of points along one of the `axes`, which are not the lanes', whose shared loads and
// operations save a core the most time over computing them one by one (unroll-and-jam of that
// axis's loop); nothing if none saves a share worth its code, or registers cannot hold what is
// shared.
std::optional<Block> jammed_block(const graph::Graph& graph, const Kernel& kernel,
                                  const Stage& stage, const Capabilities& caps, int64_t lanes,
                                  const Ints& axes);

// Copies of a loop's body, without values carried from one iteration to the next, that hide the
// latency of its operations and whose values fit the registers; at least 1.
int64_t interleaved_copies(const PointCost& cost, const Capabilities& caps);

}  // namespace rune::schedule
