// The cost model: the time for computing, storing and loading on a device, from the figures in its
// Capabilities. The unit of arithmetic is an addition of elements; times are in nanoseconds.
#pragma once

#include <vector>

#include "schedule/indexing/demand.h"
#include "schedule/schedule.h"
#include "symbolic/expr.h"
#include "types/capabilities.h"

namespace rune::schedule {

// The arithmetic for one element of a node, in additions; 0 for movement.
double node_operations(const Capabilities& caps, const graph::Graph& graph,
                       const graph::Node& node);

// For each node, the operations that compute one element from the values that `is_root` marks as
// stored. Shared subexpressions count once for each use. This is an upper bound, limited to
// kMaxTreeOperations.
inline constexpr double kMaxTreeOperations = 1e4;
std::vector<double> tree_operations(const Capabilities& caps, const graph::Graph& graph,
                                    const std::vector<bool>& is_root);

// The time of operations on elements of this dtype with all cores busy.
double operations_ns(const Capabilities& caps, double operations, DType dtype);

// The share of `footprint` bytes, which are used repeatedly, that a cache holds.
double share_held(double cache_bytes, double footprint);

// The time to move bytes between the memories that hold `footprint` bytes and all cores, or `cores`
// of them.
double memory_ns(const Capabilities& caps, double bytes, double footprint);
double memory_ns(const Capabilities& caps, double bytes, double footprint, double cores);

// The time to store elements and load them again, including another kernel's launch.
double store_ns(const Capabilities& caps, double bytes);

// The time of a call without its items: the host finds the program, reads the arguments, and makes
// arrays for the results. `arguments` counts arguments and results.
double call_ns(size_t arguments);

// Whether work that takes one core this long should be shared with other cores. Always true for
// grids.
bool is_worth_sharing(const Capabilities& caps, double one_core_ns);

// The operations for each element: to evaluate a condition of a mask, and to load or store at a
// position that a walk of the kernel found. Before the mapping, all accesses count as vectors.
double mask_operations(const Capabilities& caps, const sym::Expr& condition);
double access_operations(const Capabilities& caps, const Kernel& kernel, const sym::Expr& position,
                         DType dtype, const Walk& walked);

// Whether the elements of neighbouring lanes are so close that loading whole vectors, with
// everything between them, takes fewer loads than loading each lane's element. False for stride 1
// and -1.
bool loads_whole_vectors(int64_t stride, int64_t lanes);

// Whether the elements of neighbouring lanes are so close that the elements of `stride` points,
// which fill the gaps, are best loaded or stored together, as `stride` whole vectors that are
// shuffled.
bool interleaves(int64_t stride, int64_t lanes);

}  // namespace rune::schedule
