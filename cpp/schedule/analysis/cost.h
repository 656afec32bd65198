// The cost model: what computing, storing and loading take on a device, by the figures in its
// Capabilities. Additions of elements are the unit of arithmetic; times are in nanoseconds.
#pragma once

#include <vector>

#include "schedule/indexing/demand.h"
#include "schedule/schedule.h"
#include "symbolic/expr.h"
#include "types/capabilities.h"

namespace rune::schedule {

// Arithmetic of one element of a node, in additions; 0 for movement.
double node_operations(const Capabilities& caps, const graph::Graph& graph,
                       const graph::Node& node);

// By node: operations to compute one element from what `is_root` marks as stored, counting shared
// subexpressions once per use (an upper bound, saturated at kMaxTreeOperations).
inline constexpr double kMaxTreeOperations = 1e4;
std::vector<double> tree_operations(const Capabilities& caps, const graph::Graph& graph,
                                    const std::vector<bool>& is_root);

// Operations on elements of this dtype, all cores busy.
double operations_ns(const Capabilities& caps, double operations, DType dtype);

// The share of `footprint` bytes, used again and again, that is found in a cache.
double share_held(double cache_bytes, double footprint);

// Moving bytes between the cores and the memories that hold `footprint` bytes: of all cores, or of
// `cores` of them.
double memory_ns(const Capabilities& caps, double bytes, double footprint);
double memory_ns(const Capabilities& caps, double bytes, double footprint, double cores);

// Storing elements and loading them again, and the kernel that this takes.
double store_ns(const Capabilities& caps, double bytes);

// A call of a program beside its items: finding it by its arguments, reading them, and making
// arrays of its results, which `arguments` counts as well. The host does this, whatever the device.
double call_ns(size_t arguments);

// Whether work that takes one core this long is worth handing over to others; of a grid, always.
bool is_worth_sharing(const Capabilities& caps, double one_core_ns);

// Operations per element: of telling whether a condition of a mask holds, and of loading or storing
// at a position that a walk of the kernel found. Before the mapping all accesses are of vectors.
double mask_operations(const Capabilities& caps, const sym::Expr& condition);
double access_operations(const Capabilities& caps, const Kernel& kernel, const sym::Expr& position,
                         DType dtype, const Walk& walked);

// Whether neighbouring lanes read elements so few apart that it takes fewer loads to read all that
// lies between them, a vector at a time, than to read each lane's element. Not of stride 1 or -1.
bool loads_whole_vectors(int64_t stride, int64_t lanes);

// Whether neighbouring lanes' elements are so few apart that those of `stride` points, which fill
// what lies between them, are best loaded or stored together: as many whole vectors, shuffled.
bool interleaves(int64_t stride, int64_t lanes);

}  // namespace rune::schedule
