#include "schedule/indexing/demand.h"

#include <algorithm>

#include "base/interrupt.h"

namespace rune::schedule {

using graph::Graph;
using graph::Value;

Index variable_index(const Shape& shape, uint32_t first) {
  Index index;
  for (size_t i = 0; i < shape.size(); ++i)
    index.push_back(sym::Expr::variable(first + static_cast<uint32_t>(i),
                                        {0, std::max<int64_t>(shape[i].bound() - 1, 0)}));
  return index;
}

namespace {

class Walker {
 public:
  explicit Walker(const Graph& graph) : graph_(graph) {}

  void request(Access access, const sym::Mask& outer) {
    Demand demand{std::move(access.index), std::move(access.mask)};
    demand.mask.require(outer);
    if (demand.mask.is_false()) return;
    if (!copies_.empty())
      for (const sym::Expr& expr : demand.index)
        for (const uint32_t variable : expr.variables())
          if (const auto it = copies_.find(variable); it != copies_.end())
            demand.copies = std::max(demand.copies, it->second);
    std::vector<Demand>& known = result.demands[access.value.id];
    if (!contains(known, demand)) known.push_back(std::move(demand));
  }

  void expand(Value v, const Demand& demand, const Index& inner) {
    for (Access& access : accesses_of({v, demand.index, inner}))
      request(std::move(access), demand.mask);
  }

  // New variables for a value: the loop variables of a reduction that is computed where it is used,
  // or the position that a gather loads, which differs between its demands.
  Index inner_index(Value v) {
    const Evaluation evaluation = evaluation_of(graph_[v]);
    if (evaluation != Evaluation::Reduction && evaluation != Evaluation::Gathered) return {};
    const Shape shape = evaluation == Evaluation::Gathered ? Shape{gathered_extent(graph_, v)}
                                                           : reduced_shape(graph_, v);
    const Index index = variable_index(shape, next_variable_);
    double copies = 0;
    if (const auto known = result.demands.find(v.id); known != result.demands.end())
      for (const Demand& demand : known->second) copies += demand.copies;
    for (size_t i = 0; i < shape.size(); ++i) {
      copies_[next_variable_] = copies;
      result.inner_extents[next_variable_++] = shape[i].bound();
    }
    return index;
  }

  // The elements that computing the seed reads. For a gather, all but the last one determine the
  // position of the last.
  std::vector<Access> accesses_of(const Seed& seed) {
    std::vector<Access> accesses = seed_accesses(graph_, seed);
    if (evaluation_of(graph_[seed.value]) != Evaluation::Gathered) return accesses;
    for (size_t i = 0; i + 1 < accesses.size(); ++i)
      for (const uint32_t variable : seed.inner[0].variables())
        result.positions[variable].merge(result.variables_of(accesses[i].index));
    return accesses;
  }

  Walk result;

 private:
  const Graph& graph_;
  std::map<uint32_t, double> copies_;  // by variable of inner_index: the copies of its value
  uint32_t next_variable_ = kFirstInnerVariable;
};

Walk follow(Walker walker, const Stop& stop) {
  check_interrupt();
  // Operands have smaller ids than their users, so a node is visited after all its users.
  for (auto it = walker.result.demands.begin(); it != walker.result.demands.end(); ++it) {
    const Value v{it->first};
    if (stop(v, it->second)) continue;
    const Index inner = walker.inner_index(v);
    for (const Demand& demand : it->second) walker.expand(v, demand, inner);
  }
  return std::move(walker.result);
}

}  // namespace

std::set<uint32_t> Walk::variables_of(const Index& index) const {
  std::set<uint32_t> result;
  for (const sym::Expr& expr : index)
    for (const uint32_t variable : expr.variables()) {
      if (is_size_variable(variable)) continue;
      const auto data = positions.find(variable);
      if (data == positions.end())
        result.insert(variable);
      else
        result.insert(data->second.begin(), data->second.end());
    }
  return result;
}

std::vector<Access> seed_accesses(const Graph& graph, const Seed& seed) {
  switch (evaluation_of(graph[seed.value])) {
    case Evaluation::Alu:
    case Evaluation::Forward:
    case Evaluation::Select: return operand_accesses(graph, seed.value, seed.index);
    case Evaluation::Reduction:
      return reduction_accesses(graph, seed.value, seed.index, seed.inner);
    case Evaluation::Gathered:
      return gathered_accesses(graph, seed.value, seed.index, seed.inner[0]);
    case Evaluation::Scattered:
      if (seed.inner.empty()) return {{graph[seed.value].inputs[0], seed.index, {}}};
      return scattered_accesses(graph, seed.value, seed.index, seed.inner[0]);
    case Evaluation::Scanned: return scanned_accesses(graph, seed.value, seed.index);
    case Evaluation::Constant:
    case Evaluation::Counted:
    case Evaluation::Variable:
    case Evaluation::Moved:
    case Evaluation::Memory:
    case Evaluation::Called: break;
  }
  return {};
}

Walk walk(const Graph& graph, const std::vector<Seed>& seeds, const Stop& stop) {
  Walker walker(graph);
  for (Seed seed : seeds) {
    // A gather that is the seed itself has no variable for its position yet.
    if (seed.inner.empty()) seed.inner = walker.inner_index(seed.value);
    for (Access& access : walker.accesses_of(seed)) walker.request(std::move(access), {});
  }
  return follow(std::move(walker), stop);
}

Walk walk(const Graph& graph, const std::vector<Access>& wanted, const Stop& stop) {
  Walker walker(graph);
  for (const Access& access : wanted) walker.request(access, {});
  return follow(std::move(walker), stop);
}

}  // namespace rune::schedule
