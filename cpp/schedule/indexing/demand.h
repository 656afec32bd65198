// Which elements of which values a computation reads: index tuples propagated from what is wanted
// down to what is already in memory.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <vector>

#include "schedule/indexing/indexing.h"

namespace rune::schedule {

// One wanted element, in terms of loop variables.
struct Demand {
  Index index;
  sym::Mask mask;
  // How many times its value is computed: once, or as often as the gather whose position it is at.
  double copies = 1;
  bool operator==(const Demand& other) const { return index == other.index && mask == other.mask; }
};

// A value to be computed at `index`; of a reduction, folding over `inner`; of a gather, `inner` is
// the position that it loads; of a scatter, the number of an update, or none for its beginning.
struct Seed {
  graph::Value value;
  Index index;
  Index inner;
};

struct Walk {
  // The distinct demands of each node reached; users before operands.
  std::map<uint32_t, std::vector<Demand>, std::greater<>> demands;
  // Variables made for reductions that are folded inside another computation and for positions that
  // are data, with their extents.
  std::map<uint32_t, int64_t> inner_extents;
  // Of those for positions that are data: the variables that the data depend on.
  std::map<uint32_t, std::set<uint32_t>> positions;

  // Variables of loops that an index depends on, also through data.
  std::set<uint32_t> variables_of(const Index& index) const;
};

// Ids of variables that a walk makes itself start here.
inline constexpr uint32_t kFirstInnerVariable = 1u << 20;

// Index of a value of this shape by variables `first`, `first` + 1, ..., one a dimension.
Index variable_index(const Shape& shape, uint32_t first);

// What computing the seed reads of its operands.
std::vector<Access> seed_accesses(const graph::Graph& graph, const Seed& seed);

// Follows what is wanted down to memory. `stop` is asked once per node, when all its demands are
// known: true means that the node is read from memory, so its operands are not followed.
using Stop = std::function<bool(graph::Value, const std::vector<Demand>&)>;
Walk walk(const graph::Graph& graph, const std::vector<Access>& wanted, const Stop& stop);
// The same for the operands of seeds.
Walk walk(const graph::Graph& graph, const std::vector<Seed>& seeds, const Stop& stop);

}  // namespace rune::schedule
