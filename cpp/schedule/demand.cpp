#include "schedule/demand.h"

#include <algorithm>

namespace rune::schedule {

using graph::Graph;
using graph::Value;

Index variable_index(const Shape& shape, uint32_t first) {
  Index index;
  for (size_t i = 0; i < shape.size(); ++i)
    index.push_back(sym::Expr::variable(first + static_cast<uint32_t>(i),
                                        {0, std::max<int64_t>(shape[i] - 1, 0)}));
  return index;
}

namespace {

class Walker {
 public:
  explicit Walker(const Graph& graph) : graph_(graph) {}

  void request(const Access& access, const sym::Mask& outer) {
    Demand demand{access.index, access.mask};
    demand.mask.require(outer);
    if (demand.mask.is_false()) return;
    std::vector<Demand>& known = result.demands[access.value.id];
    if (std::find(known.begin(), known.end(), demand) == known.end()) known.push_back(std::move(demand));
  }

  void expand(Value v, const Demand& demand, const Index& inner) {
    for (const Access& access : seed_accesses(graph_, {v, demand.index, inner})) request(access, demand.mask);
  }

  // Loop variables of a reduction that is folded where it is used.
  Index inner_index(Value v) {
    const Shape shape = reduced_shape(graph_, v);
    const Index index = variable_index(shape, next_variable_);
    for (size_t i = 0; i < shape.size(); ++i) result.inner_extents[next_variable_++] = shape[i];
    return index;
  }

  Walk result;

 private:
  const Graph& graph_;
  uint32_t next_variable_ = kFirstInnerVariable;
};

}  // namespace

std::vector<Access> seed_accesses(const Graph& graph, const Seed& seed) {
  switch (evaluation_of(graph[seed.value])) {
    case Evaluation::Alu:
    case Evaluation::Forward:
    case Evaluation::Select: return operand_accesses(graph, seed.value, seed.index);
    case Evaluation::Reduction: return reduction_accesses(graph, seed.value, seed.index, seed.inner);
    case Evaluation::Constant:
    case Evaluation::Memory:
    case Evaluation::Gathered:
    case Evaluation::Mask: break;
  }
  return {};
}

Walk walk(const Graph& graph, const std::vector<Seed>& seeds, const Stop& stop) {
  std::vector<Access> wanted;
  for (const Seed& seed : seeds)
    for (Access& access : seed_accesses(graph, seed)) wanted.push_back(std::move(access));
  return walk(graph, wanted, stop);
}

Walk walk(const Graph& graph, const std::vector<Access>& wanted, const Stop& stop) {
  Walker walker(graph);
  for (const Access& access : wanted) walker.request(access, {});
  // Operands have smaller ids than their users, so a node is visited after all that demand it.
  for (auto it = walker.result.demands.begin(); it != walker.result.demands.end(); ++it) {
    const Value v{it->first};
    if (stop(v, it->second)) continue;
    const bool reduces = evaluation_of(graph[v]) == Evaluation::Reduction;
    const Index inner = reduces ? walker.inner_index(v) : Index{};
    for (const Demand& demand : it->second) walker.expand(v, demand, inner);
  }
  return std::move(walker.result);
}

}  // namespace rune::schedule
