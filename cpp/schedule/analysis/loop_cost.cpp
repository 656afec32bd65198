#include "schedule/analysis/loop_cost.h"

#include <algorithm>
#include <cmath>

#include "graph/loops.h"
#include "schedule/analysis/analysis.h"
#include "schedule/analysis/cost.h"

namespace rune::schedule {

namespace {

using graph::LoopTree;
using graph::Node;

double mean(const Dim& size) {
  return (static_cast<double>(size.least()) + static_cast<double>(size.bound())) / 2;
}

double elements(const Shape& shape) {
  double product = 1;
  for (const Dim& size : shape) product *= mean(size);
  return product;
}

// The flops of an element of the node.
double flops_of_element(const Graph& nest, const Node& node) {
  if (node.as<graph::Unary>() || node.as<graph::Binop>() || node.as<graph::Ternary>()) return 1;
  double count = node.as<graph::Contract>() ? 2 : 1;
  if (const auto* reduce = node.as<graph::Reduce_Axis>()) {
    for (const int64_t axis : reduce->axes) count *= mean(nest[node.inputs[0]].shape()[axis]);
    return count;
  }
  const auto* contract = node.as<graph::Contract>();
  if (!contract) return 0;
  for (const auto& pair : contract->contract)
    count *= mean(nest[node.inputs[0]].shape()[pair.first]);
  return count;
}

struct Work {
  double flops = 0, ns = 0;
};

// One core's work for all iterations of a loop.
Work work_of(const Graph& nest, const Capabilities& caps, const LoopTree& tree,
             const LoopTree::Loop& loop) {
  constexpr double kIterationNs = 1;
  Work work{0, kIterationNs};
  for (const uint32_t id : loop.members) {
    const Node& node = nest.nodes[id];
    if (node.as<graph::End_Loop>()) {
      const Work inner = work_of(nest, caps, tree, tree.ended_by({id}));
      work.flops += inner.flops;
      work.ns += inner.ns;
      continue;
    }
    const double flops = flops_of_element(nest, node);
    if (flops == 0) continue;
    const double count = elements(node.shape()) * flops;
    work.flops += count;
    // A single element takes as long as a vector of them.
    const double cost = std::max(1.0, node_operations(caps, nest, node));
    const double computed = std::max(count, static_cast<double>(caps.lanes(node.dtype())));
    work.ns += operations_ns(caps, computed * cost, node.dtype()) * caps.num_cores;
  }
  const auto& range = *nest[loop.end].as<graph::End_Loop>();
  const double trips = mean_trips(range.start, range.stop, range.step, range.goes_on.has_value());
  return {work.flops * trips, work.ns * trips};
}

}  // namespace

double mean_trips(const Dim& start, const Dim& stop, int64_t step, bool may_end) {
  constexpr double kTripsToCondition = 100;
  const Dim span = step > 0 ? stop - start : start - stop;
  const double trips = std::max(0.0, mean(span) / static_cast<double>(std::abs(step)));
  return may_end ? std::min(trips, kTripsToCondition) : trips;
}

ItemAnalysis analyze_loops(const Graph& graph, const Capabilities& caps, const Loop_Nest& item) {
  const Graph& nest = *graph[item.outputs.front()].as<graph::Loop_Nest>()->graph.graph;
  const LoopTree tree(nest);
  Work work;
  for (const LoopTree::Loop& loop : tree.loops()) {
    if (loop.parent) continue;
    const Work outermost = work_of(nest, caps, tree, loop);
    work.flops += outermost.flops;
    work.ns += outermost.ns;
  }
  ItemAnalysis result;
  for (const Value v : item.inputs) result.bytes_read += bytes_of(graph[v]);
  for (const Value v : item.outputs) result.bytes_written += bytes_of(graph[v]);
  const double bytes = static_cast<double>(result.bytes_read + result.bytes_written);
  result.flops = estimate(work.flops);
  result.occupancy = 1.0 / caps.num_cores;
  result.work_ns = estimate(std::max(work.ns, memory_ns(caps, bytes, bytes, 1)));
  result.est_ns = estimate(caps.launch_ns) + result.work_ns;
  return result;
}

}  // namespace rune::schedule
