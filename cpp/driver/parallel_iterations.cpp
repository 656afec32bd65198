#include "driver/parallel_iterations.h"

#include <algorithm>
#include <set>
#include <span>

namespace rune::driver {

namespace {

using graph::Graph;
using graph::Node;
using graph::Value;

void collect_stored(std::span<const Statement> statements, std::set<size_t>& stored) {
  for (const Statement& statement : statements) {
    if (const auto* store = std::get_if<Store>(&statement.action)) stored.insert(store->target);
    if (const auto* compute = std::get_if<Compute>(&statement.action))
      stored.insert(compute->outputs.begin(), compute->outputs.end());
    if (const auto* repeat = std::get_if<Repeat>(&statement.action))
      collect_stored(repeat->body, stored);
  }
}

// Whether a computation touches slices of the cell only, if it touches it at all.
template <class F>
bool computes_on_slices(const Compute& compute, size_t cell, size_t axis, const F& is_slice) {
  const Graph& graph = compute.graph;
  const auto& outputs = compute.outputs;
  if (std::find(outputs.begin(), outputs.end(), cell) != outputs.end() &&
      (!compute.offsets ||
       !is_slice((*compute.offsets)[axis], graph[graph.outputs[0]].shape()[axis])))
    return false;
  const auto reads_cell = [&](Value v) {
    const auto* placeholder = graph[v].as<graph::Placeholder>();
    return placeholder && compute.inputs[placeholder->index] == cell;
  };
  if (std::any_of(graph.outputs.begin(), graph.outputs.end(), reads_cell)) return false;
  return std::all_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
    if (std::none_of(node.inputs.begin(), node.inputs.end(), reads_cell)) return true;
    const auto* shrink = node.as<graph::Shrink>();
    return shrink && is_slice(shrink->limits[axis].first,
                              shrink->limits[axis].second - shrink->limits[axis].first);
  });
}

// A copy of an input to an output.
bool begins_output(const LoopPlan& plan, const Statement& statement) {
  const auto* store = std::get_if<Store>(&statement.action);
  return store && plan.cells[store->target].output && plan.cells[store->part].input;
}
bool fills_own_cells(const LoopPlan& plan, const Statement& statement) {
  std::set<size_t> stored;
  collect_stored({&statement, 1}, stored);
  return std::none_of(stored.begin(), stored.end(),
                      [&](size_t cell) { return plan.cells[cell].output.has_value(); });
}

template <class F>
bool touches_slices(const LoopPlan& plan, const std::vector<Statement>& statements, size_t cell,
                    size_t axis, const F& is_slice) {
  for (const Statement& statement : statements) {
    if (const auto* store = std::get_if<Store>(&statement.action)) {
      if (store->part == cell) return false;
      if (store->target == cell &&
          !is_slice(store->offsets[axis], plan.cells[store->part].shape[axis]))
        return false;
    }
    if (const auto* repeat = std::get_if<Repeat>(&statement.action))
      if (!touches_slices(plan, repeat->body, cell, axis, is_slice)) return false;
    if (const auto* compute = std::get_if<Compute>(&statement.action))
      if (!computes_on_slices(*compute, cell, axis, is_slice)) return false;
  }
  return true;
}

// Whether each iteration touches a slice of the cell of its own: along one axis, the element
// whose distance from the counter is the same wherever the cell is read or stored to.
bool is_touched_in_slices(const LoopPlan& plan, size_t cell, const Repeat& repeat) {
  const Dim counter(repeat.counter);
  if (counter.is_constant()) return false;
  for (size_t axis = 0; axis < plan.cells[cell].shape.size(); ++axis) {
    std::optional<Dim> at;
    const auto is_slice = [&](const Dim& first, const Dim& size) {
      if (size != 1 || !(first - counter).is_constant()) return false;
      if (!at) at = first;
      return *at == first;
    };
    if (touches_slices(plan, repeat.body, cell, axis, is_slice)) return true;
  }
  return false;
}

}  // namespace

void find_parallel_iterations(LoopPlan& plan) {
  std::vector<Statement>& statements = plan.statements;
  const auto* repeat =
      statements.empty() ? nullptr : std::get_if<Repeat>(&statements.back().action);
  if (!repeat) return;
  for (size_t s = 0; s + 1 < statements.size(); ++s)
    if (!begins_output(plan, statements[s]) && !fills_own_cells(plan, statements[s])) return;
  std::set<size_t> stored;
  collect_stored(repeat->body, stored);
  for (const size_t cell : stored) {
    const bool is_temporary = !plan.cells[cell].is_carried && !plan.cells[cell].output;
    if (!is_temporary && !is_touched_in_slices(plan, cell, *repeat)) return;
  }
  plan.is_parallel = true;
  for (const Statement& statement : statements)
    if (begins_output(plan, statement)) {
      const auto& store = std::get<Store>(statement.action);
      plan.copies.emplace_back(*plan.cells[store.target].output, *plan.cells[store.part].input);
    }
  std::erase_if(statements, [&](const Statement& s) { return begins_output(plan, s); });
}

}  // namespace rune::driver
