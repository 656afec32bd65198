#include "schedule/mapping/point_cost.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "schedule/analysis/cost.h"
#include "schedule/indexing/demand.h"

namespace rune::schedule {

namespace {

// Typical of cores: the cycles until the result of a floating-point operation can be used, and the
// operations that begin in a cycle.
constexpr double kLatency = 4;
constexpr double kIssued = 2;
// For the expansion of exp and similar operations: the part of its operations that form a chain,
// and the registers that they need in addition to the operand's.
constexpr double kCostlyChain = 0.7;
constexpr double kCostlyRegisters = 4;
constexpr double kMostJammed = 4;
// The least loads per point for which jamming is considered. With fewer, loads take little time.
constexpr double kFewestLoads = 4;
// Jamming pays if a point then takes at most this part of its time.
constexpr double kWorthJamming = 0.85;
// The most operations in all copies. More code is not worth compiling.
constexpr double kMostOperations = 1200;
// The size of a cache line in bits, the most adjacent vectors of a row that are computed together,
// and the most operations of such a block whose values stay in registers.
constexpr int kLineBits = 512;
constexpr int64_t kJammedVectors = 4;
constexpr double kMostBlockOperations = 112;

// A value occupies registers from the operation that defines it (for a load: the first one that
// uses it) to the last one that uses it.
struct Lifetime {
  uint32_t first;
  uint32_t last;
  double registers;
};

double most_at_once(const std::vector<Lifetime>& lifetimes,
                    const std::map<uint32_t, double>& temporary) {
  std::map<uint32_t, double> change;
  for (const Lifetime& life : lifetimes) {
    change[life.first] += life.registers;
    change[life.last] -= life.registers;
  }
  for (const auto& [id, registers] : temporary) change.try_emplace(id, 0);
  double now = 0, most = 0;
  for (const auto& [id, delta] : change) {
    const auto extra = temporary.find(id);
    most = std::max(most, now + (extra == temporary.end() ? 0 : extra->second));
    now += delta;
    most = std::max(most, now);
  }
  return most;
}

std::vector<Seed> block_seeds(const Graph& graph, const Kernel& kernel, const Stage& stage,
                              const Block& block) {
  std::vector<sym::Expr> axes = axis_variables(kernel.iter);
  if (block.count == 1) return stage_seeds(graph, stage, axes);
  const sym::Expr first = sym::Expr::variable(
      static_cast<uint32_t>(block.axis), {0, kernel.iter.axes[block.axis].extent() - block.count});
  std::vector<Seed> seeds;
  for (int64_t i = 0; i < block.count; ++i) {
    axes[block.axis] = first + i;
    for (Seed& seed : stage_seeds(graph, stage, axes)) seeds.push_back(std::move(seed));
  }
  return seeds;
}

// Whether a value is the same at all points of the stage's own axes, so that it is computed before
// their loops.
bool is_hoisted(const Stage& stage, const std::vector<Demand>& demands) {
  const auto changes = [&](const sym::Expr& position) {
    const std::vector<uint32_t> variables = position.variables();
    return std::any_of(variables.begin(), variables.end(), [&](uint32_t variable) {
      return variable >= kFirstInnerVariable || contains(stage.axes, int64_t{variable});
    });
  };
  return !stage.axes.empty() &&
         std::none_of(demands.begin(), demands.end(), [&](const Demand& demand) {
           return std::any_of(demand.index.begin(), demand.index.end(), changes);
         });
}

// The cycles for each of a block's points. Most loads cross cache lines, so one begins per cycle.
// Values that do not fit the registers are loaded again.
double cycles_per_point(const PointCost& cost, const Capabilities& caps, int64_t points) {
  const double spilled = std::max(0.0, cost.registers - caps.num_vector_registers);
  return (cost.operations / kIssued + cost.loads + spilled) / static_cast<double>(points);
}

// The number of adjacent vectors at each of a block's points. If a vector is as long as a cache
// line, almost every store crosses two lines. A core merges the parts in a line only if it stores
// nothing else between them.
int64_t jammed_vectors(const PointCost& cost, const Capabilities& caps) {
  if (caps.vector_bits < kLineBits) return 1;
  const auto compiled = static_cast<int64_t>(kMostBlockOperations / std::max(1.0, cost.operations));
  return std::clamp<int64_t>(compiled, 1, kJammedVectors);
}

}  // namespace

PointCost point_cost(const Graph& graph, const Kernel& kernel, const Stage& stage,
                     const Capabilities& caps, int64_t lanes, const std::optional<Block>& block) {
  std::set<uint32_t> inputs;
  for (const Value v : kernel.inputs) inputs.insert(v.id);
  std::set<uint32_t> loaded = inputs;
  for (const Stage& other : kernel.stages())
    if (other.kind == StageKind::Reduce)
      for (const StageValue& value : other.values) loaded.insert(value.value.id);

  std::map<uint32_t, double> copies;  // by value: the number of positions where it is computed
  const std::vector<Seed> seeds = block_seeds(graph, kernel, stage, block.value_or(Block{}));
  for (const Seed& seed : seeds) copies[seed.value.id] += 1;
  walk(graph, seeds, [&](Value v, const std::vector<Demand>& demands) {
    if (!loaded.count(v.id) && is_hoisted(stage, demands)) return true;
    copies[v.id] += static_cast<double>(demands.size());
    return loaded.count(v.id) > 0;
  });

  const auto registers = [&](uint32_t id) {
    if (is_bool(graph.nodes[id].dtype())) return 0.0;  // masks have registers of their own
    const double bits = static_cast<double>(lanes * bits_of(graph.nodes[id].dtype()));
    return copies.at(id) * std::max(1.0, std::ceil(bits / caps.vector_bits));
  };
  PointCost cost;
  std::map<uint32_t, double> depth, temporary;
  for (const auto& [id, count] : copies) {
    const graph::Node& node = graph.nodes[id];
    if (loaded.count(id) && depth.try_emplace(id, 0).second) {
      if (inputs.count(id)) cost.loads += count;
      continue;
    }
    const double operations = node_operations(caps, graph, node);
    cost.operations += operations * count;
    double before = 0;
    for (const Value input : node.inputs)
      if (const auto it = depth.find(input.id); it != depth.end())
        before = std::max(before, it->second);
    depth[id] = before + (operations > 1 ? kCostlyChain * operations : operations);
    cost.depth = std::max(cost.depth, depth[id]);
    if (operations > 1) temporary[id] = kCostlyRegisters;
  }

  // Users have larger ids. A node without operations lengthens the lifetimes of its operands.
  std::map<uint32_t, Lifetime> lifetimes;
  for (auto it = copies.rbegin(); it != copies.rend(); ++it) {
    const uint32_t user = it->first;
    if (loaded.count(user)) continue;
    const auto own = lifetimes.find(user);
    const bool computes =
        node_operations(caps, graph, graph.nodes[user]) > 0 || own == lifetimes.end();
    const uint32_t first = computes ? user : own->second.first;
    const uint32_t last = computes ? user : own->second.last;
    for (const Value input : graph.nodes[user].inputs) {
      if (!copies.count(input.id)) continue;
      const auto [life, added] = lifetimes.try_emplace(input.id, Lifetime{first, last, 0});
      life->second.first = std::min(life->second.first, first);
      life->second.last = std::max(life->second.last, last);
    }
  }
  std::vector<Lifetime> values;
  for (auto& [id, life] : lifetimes) {
    const bool computed = !loaded.count(id) && node_operations(caps, graph, graph.nodes[id]) > 0;
    if (!computed && !loaded.count(id)) continue;
    values.push_back({computed ? id : life.first, life.last, registers(id)});
  }
  cost.registers = most_at_once(values, temporary);
  return cost;
}

std::optional<Block> jammed_block(const Graph& graph, const Kernel& kernel, const Stage& stage,
                                  const Capabilities& caps, int64_t lanes, const Ints& axes) {
  const PointCost one = point_cost(graph, kernel, stage, caps, lanes);
  if (one.loads < kFewestLoads) return std::nullopt;
  double least = kWorthJamming * cycles_per_point(one, caps, 1);
  std::optional<Block> best;
  for (const int64_t axis : axes)
    for (const int64_t count : {2, 4}) {
      const bool fits = 2 * count <= kernel.iter.axes[axis].extent() &&
                        static_cast<double>(count) * one.operations <= kMostOperations;
      if (!fits) continue;
      const Block block{axis, count};
      const PointCost cost = point_cost(graph, kernel, stage, caps, lanes, block);
      const double cycles = cycles_per_point(cost, caps, count);
      if (cycles >= least) continue;
      least = cycles;
      best = block;
      best->vectors = jammed_vectors(cost, caps);
    }
  return best;
}

int64_t interleaved_copies(const PointCost& cost, const Capabilities& caps) {
  if (cost.operations <= 0) return static_cast<int64_t>(kMostJammed);
  const double wanted = std::ceil(kLatency * cost.depth / (cost.operations / kIssued));
  const double fitting = std::floor(caps.num_vector_registers / std::max(1.0, cost.registers));
  const double compiled = std::floor(kMostOperations / cost.operations);
  return static_cast<int64_t>(std::clamp(std::min({wanted, fitting, compiled}), 1.0, kMostJammed));
}

}  // namespace rune::schedule
