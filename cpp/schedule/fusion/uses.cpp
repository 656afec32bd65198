#include "schedule/fusion/uses.h"

#include <algorithm>
#include <iterator>

#include "schedule/fusion/cat_parts.h"

namespace rune::schedule {

using graph::Graph;
using graph::Value;

namespace {

// The greatest variable of an expression that is not a size, or -1.
int64_t last_variable(const sym::Expr& expr) {
  int64_t last = -1;
  for (const uint32_t variable : expr.variables())
    if (!is_size_variable(variable)) last = variable;
  return last;
}

// The number of values of a variable, out of `extent`, for which the conditions on it alone hold.
int64_t admitted(const sym::Mask& mask, uint32_t variable, int64_t extent) {
  int64_t low = 0, high = extent - 1;
  for (const sym::Expr& condition : mask.conditions()) {
    const auto& terms = condition.terms();
    if (terms.size() != 1 || terms[0].atom->kind != sym::Atom::Kind::Variable ||
        terms[0].atom->variable != variable)
      continue;
    const int64_t c = terms[0].coefficient, d = condition.constant();  // c * variable + d >= 0
    if (c > 0)
      low = std::max(low, -floordiv(sym::Expr(d), c).constant());
    else
      high = std::min(high, floordiv(sym::Expr(d), -c).constant());
  }
  return std::max<int64_t>(0, high - low + 1);
}

}  // namespace

double evaluations(const Demand& demand, const Ints& extents, bool where_masked) {
  int64_t deepest = -1;
  for (const sym::Expr& expr : demand.index) deepest = std::max(deepest, last_variable(expr));
  if (deepest >= static_cast<int64_t>(extents.size())) return 0;
  double count = 1;
  for (int64_t i = 0; i <= deepest; ++i)
    count *= static_cast<double>(
        where_masked ? admitted(demand.mask, static_cast<uint32_t>(i), extents[i]) : extents[i]);
  return count;
}

Uses::Uses(const Graph& graph, std::vector<bool> materialized, std::vector<bool> by_parts)
    : graph_(graph),
      materialized_(std::move(materialized)),
      by_parts_(std::move(by_parts)),
      uses_(graph.size()),
      visits_(graph.size()),
      is_known_(graph.size(), false),
      length_(graph.size(), 0),
      evaluated_(graph.size(), 0) {}

void Uses::update(const std::vector<Value>& outputs,
                  const std::function<bool(const Reached&)>& materialize) {
  std::vector<bool> wanted(graph_.size(), false);
  for (const Value v : outputs) wanted[v.id] = true;
  for (uint32_t id = static_cast<uint32_t>(graph_.size()); id-- > 0;) {
    if (!wanted[id] || evaluation_of(graph_.nodes[id]) == Evaluation::Memory) {
      materialized_[id] = false;
      forget(id);
      continue;
    }
    if (is_outdated(id)) visit(Value{id}, materialize);
    for (const Use& use : uses_[id]) wanted[use.value.id] = true;
  }
}

void Uses::dematerialize(uint32_t id, const std::vector<uint32_t>& users) {
  materialized_[id] = false;
  uses_[id].clear();
  for (const uint32_t user : users) {
    length_[user] += length_[id];
    is_known_[user] = false;
  }
}

// Whether the uses are unknown, or pass through a value that has been materialized since.
bool Uses::is_outdated(uint32_t id) const {
  return !is_known_[id] || std::any_of(visits_[id].begin(), visits_[id].end(),
                                       [&](const Visit& visit) { return materialized_[visit.id]; });
}

void Uses::forget(uint32_t id) {
  for (const Visit& visit : visits_[id]) evaluated_[visit.id] -= visit.evaluations;
  visits_[id].clear();
  is_known_[id] = false;
}

void Uses::visit(Value v, const std::function<bool(const Reached&)>& materialize) {
  forget(v.id);
  is_known_[v.id] = true;
  const graph::Node& node = graph_[v];
  const Evaluation evaluation = evaluation_of(node);
  if (evaluation == Evaluation::Moved || evaluation == Evaluation::Called) {
    uses_[v.id].clear();
    for (const Value input : node.inputs) uses_[v.id].push_back({input, {}});
    return;
  }
  Demands uses;
  length_[v.id] = 0;
  if (by_parts_[v.id]) {
    const int64_t axis = node.as<graph::Cat>()->axis;
    for (const CatPart& part : cat_parts(graph_, v)) {
      Shape sizes = node.shape();
      sizes[axis] = part.size;
      Seed seed{v, variable_index(sizes, 0), {}};
      seed.index[axis] = seed.index[axis] + part.start;
      follow(v, {std::move(seed)}, bounds_of(sizes), materialize, uses);
    }
  } else {
    follow(v, seeds_of(v), loop_extents(v), materialize, uses);
  }
  uses_[v.id].clear();
  uses_[v.id].reserve(uses.size());
  for (auto& [id, demands] : uses) uses_[v.id].push_back({Value{id}, std::move(demands)});
}

void Uses::follow(Value v, const std::vector<Seed>& seeds, const Ints& extents,
                  const std::function<bool(const Reached&)>& materialize, Demands& uses) {
  int64_t num_computed = 0, length = 0;
  Walk walked = walk(graph_, seeds, [&](Value w, const std::vector<Demand>& demands) {
    const bool in_memory = evaluation_of(graph_[w]) == Evaluation::Memory;
    if (!in_memory && !materialized_[w.id] &&
        materialize({w, demands, extents, num_computed, length}))
      materialized_[w.id] = true;
    if (in_memory || materialized_[w.id]) return true;
    double count = 0;
    for (const Demand& demand : demands) count += evaluations(demand, extents, false);
    evaluated_[w.id] += count;
    visits_[v.id].push_back({w.id, count});
    ++num_computed;
    length += static_cast<int64_t>(demands.size());
    return false;
  });
  length_[v.id] += length;
  for (auto& [id, demands] : walked.demands) {
    if (!materialized_[id] && evaluation_of(graph_.nodes[id]) != Evaluation::Memory) continue;
    std::vector<Demand>& known = uses[id];
    std::move(demands.begin(), demands.end(), std::back_inserter(known));
  }
}

Ints Uses::loop_extents(Value v) const {
  const graph::Node& node = graph_[v];
  const Evaluation evaluation = evaluation_of(node);
  Ints extents = bounds_of(node.shape());
  if (evaluation != Evaluation::Reduction && evaluation != Evaluation::Scattered) return extents;
  // A Scatter computes each initial element and each update once.
  if (evaluation == Evaluation::Scattered) extents[sequential_axis(node)] = 1;
  const Ints inner = bounds_of(reduced_shape(graph_, v));
  extents.insert(extents.end(), inner.begin(), inner.end());
  return extents;
}

std::vector<Seed> Uses::seeds_of(Value v) const {
  const graph::Node& node = graph_[v];
  const Evaluation evaluation = evaluation_of(node);
  std::vector<Seed> seeds{{v, variable_index(node.shape(), 0), {}}};
  if (evaluation != Evaluation::Reduction && evaluation != Evaluation::Scattered) return seeds;
  if (evaluation == Evaluation::Scattered) seeds.push_back(seeds[0]);
  seeds.back().inner =
      variable_index(reduced_shape(graph_, v), static_cast<uint32_t>(node.shape().size()));
  return seeds;
}

}  // namespace rune::schedule
