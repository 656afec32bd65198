// Finds the elements that a computation reads, by propagating index tuples from the wanted elements
// down to values in memory.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <vector>

#include "schedule/indexing/indexing.h"

namespace rune::schedule {

// A wanted element, in terms of loop variables.
struct Demand {
  Index index;
  sym::Mask mask;
  // How many times the element is computed: once, or as often as the gather that determines its
  // position.
  double copies = 1;
  bool operator==(const Demand& other) const { return index == other.index && mask == other.mask; }
};

// A value to be computed at `index`. `inner` is the reduced point for a reduction, the loaded
// position for a gather, and the number of an update for a scatter (empty for its initial
// contents).
struct Seed {
  graph::Value value;
  Index index;
  Index inner;
};

struct Walk {
  // The distinct demands of each node reached, users before operands.
  std::map<uint32_t, std::vector<Demand>, std::greater<>> demands;
  // The variables that the walk makes, with their extents: for reductions that are folded inside
  // another computation, and for positions that are data.
  std::map<uint32_t, int64_t> inner_extents;
  // For each variable made for a position that is data, the variables that the data depend on.
  std::map<uint32_t, std::set<uint32_t>> positions;

  // The loop variables that an index depends on, also through data.
  std::set<uint32_t> variables_of(const Index& index) const;
};

// The first id of the variables that a walk makes.
inline constexpr uint32_t kFirstInnerVariable = 1u << 20;

// The index of a value of this shape whose dimensions are the variables `first`, `first` + 1, ...
Index variable_index(const Shape& shape, uint32_t first);

// The elements of its operands that computing the seed reads.
std::vector<Access> seed_accesses(const graph::Graph& graph, const Seed& seed);

// Follows wanted elements down to memory. Calls `stop` once for each node, when all demands of the
// node are known. If the result is true, the node is read from memory, and its operands are not
// followed.
using Stop = std::function<bool(graph::Value, const std::vector<Demand>&)>;
Walk walk(const graph::Graph& graph, const std::vector<Access>& wanted, const Stop& stop);
// The same, beginning with the operands of seeds.
Walk walk(const graph::Graph& graph, const std::vector<Seed>& seeds, const Stop& stop);

}  // namespace rune::schedule
