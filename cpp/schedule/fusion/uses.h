// Finds the elements of stored values from which each stored value is computed.
#pragma once

#include <functional>
#include <vector>

#include "schedule/indexing/demand.h"

namespace rune::schedule {

// How a materialized value reads another one, or a value that is in memory from the start.
struct Use {
  graph::Value value;
  // In the demands, variable i < rank is dimension i of the reader, and variable rank + j is its
  // reduced axis j. A host call reads all of the value, and has no demands.
  std::vector<Demand> demands;
};

// How often loops of these extents compute a demand. A value is computed once for each point of the
// loops, down to the innermost loop on which its index depends. With `where_masked`, only points
// where its mask holds count. Values that a fused reduction computes once for each element count 0.
double evaluations(const Demand& demand, const Ints& extents, bool where_masked);

// Follows each materialized value down to the materialized values and memory from which it is
// computed. All other values are computed in the kernels of the values that need them.
class Uses {
 public:
  // `by_parts` has, for each node, whether it is a concatenation that kernels store part by part.
  Uses(const graph::Graph& graph, std::vector<bool> materialized, std::vector<bool> by_parts);

  // A value that a materialized one needs, with all its demands.
  struct Reached {
    graph::Value value;
    const std::vector<Demand>& demands;
    const Ints& extents;   // of the loops of the value that needs it
    int64_t num_computed;  // nodes computed for the value that needs it, so far
    int64_t length;        // and its length so far
  };
  // Finds the uses of all values that have changed, users before operands. Calls `materialize` for
  // each value that it reaches and that is not in memory. If the result is true, the value is
  // materialized from then on. Values that no output needs lose their buffers.
  void update(const std::vector<graph::Value>& outputs,
              const std::function<bool(const Reached&)>& materialize);

  // By node.
  bool is_materialized(uint32_t id) const { return materialized_[id]; }
  void materialize(uint32_t id) { materialized_[id] = true; }
  // From the next update on, the `users` compute the value themselves.
  void dematerialize(uint32_t id, const std::vector<uint32_t>& users);
  const std::vector<bool>& materialized() const { return materialized_; }
  bool is_by_parts(uint32_t id) const { return by_parts_[id]; }
  // The uses by a materialized value, in descending order.
  const std::vector<Use>& of(uint32_t id) const { return uses_[id]; }
  // The number of nodes that are computed for a materialized value in its kernel. A node counts
  // once for each of its demands.
  int64_t length(uint32_t id) const { return length_[id]; }
  // How many times all materialized values together compute an element of the node.
  double evaluated(uint32_t id) const { return evaluated_[id]; }
  // The extents of the loops that compute a materialized value. Reduced axes come last.
  Ints loop_extents(graph::Value v) const;

 private:
  // A value that is computed for a materialized value, and how often.
  struct Visit {
    uint32_t id;
    double evaluations;
  };
  using Demands = std::map<uint32_t, std::vector<Demand>, std::greater<>>;

  bool is_outdated(uint32_t id) const;
  void forget(uint32_t id);
  void visit(graph::Value v, const std::function<bool(const Reached&)>& materialize);
  void follow(graph::Value v, const std::vector<Seed>& seeds, const Ints& extents,
              const std::function<bool(const Reached&)>& materialize, Demands& uses);
  std::vector<Seed> seeds_of(graph::Value v) const;

  const graph::Graph& graph_;
  std::vector<bool> materialized_, by_parts_;
  std::vector<std::vector<Use>> uses_;      // by materialized value
  std::vector<std::vector<Visit>> visits_;  // by materialized value
  std::vector<bool> is_known_;              // by materialized value: its uses
  std::vector<int64_t> length_;             // by materialized value
  std::vector<double> evaluated_;
};

}  // namespace rune::schedule
