#include "driver/parallel_iterations.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <span>
#include <string>
#include <utility>

namespace rune::driver {

namespace {

using graph::Graph;
using graph::Node;
using graph::Value;

void collect(std::span<const Statement> statements, CellUse& cells) {
  for (const Statement& statement : statements) {
    if (const auto* store = std::get_if<Store>(&statement.action)) {
      cells.stored.insert(store->target);
      cells.read.insert(store->part);
    }
    if (const auto* compute = std::get_if<Compute>(&statement.action)) {
      cells.stored.insert(compute->outputs.begin(), compute->outputs.end());
      cells.read.insert(compute->inputs.begin(), compute->inputs.end());
    }
    if (const auto* bind = std::get_if<Bind>(&statement.action)) cells.read.insert(bind->cell);
    if (const auto* repeat = std::get_if<Repeat>(&statement.action)) {
      if (repeat->goes_on) cells.read.insert(*repeat->goes_on);
      collect(repeat->body, cells);
    }
  }
}

// A copy of an input to an output whose size the plan knows: memory of a symbolic size may be as
// long as the size is in this run.
bool begins_output(const LoopPlan& plan, const Statement& statement) {
  const auto* store = std::get_if<Store>(&statement.action);
  return store && plan.cells[store->target].output && plan.cells[store->part].input &&
         is_constant(plan.cells[store->part].shape);
}
// Whether a copy is better made as a step of its own than by one thread of the loops.
bool is_large(const LoopPlan& plan, const Statement& copy) {
  constexpr int64_t kLargeCopy = 4096;
  return max_elements(plan.cells[std::get<Store>(copy.action).target].shape) >= kLargeCopy;
}
bool fills_own_cells(const LoopPlan& plan, const Statement& statement) {
  const std::set<size_t> stored = cells_of({&statement, 1}).stored;
  return std::none_of(stored.begin(), stored.end(),
                      [&](size_t cell) { return plan.cells[cell].output.has_value(); });
}

// The elements of a cell that a statement may read or store to: [low, high) along each axis.
struct Access {
  std::vector<std::pair<Dim, Dim>> box;
  bool is_store = false;
};

// What the statements do with a cell, and the variables that they declare.
class Accesses {
 public:
  Accesses(const LoopPlan& plan, size_t cell) : plan_(plan), cell_(cell) {}

  void add(std::span<const Statement> statements) {
    for (const Statement& statement : statements)
      std::visit([this](const auto& action) { add(action); }, statement.action);
  }

  std::vector<Access> found;
  std::set<std::string> variables;

 private:
  void add_box(const std::vector<Dim>& first, const Shape& shape, bool is_store) {
    Access& access = found.emplace_back();
    access.is_store = is_store;
    for (size_t d = 0; d < shape.size(); ++d)
      access.box.emplace_back(first[d], first[d] + shape[d]);
  }
  void add_all(bool is_store) {
    const Shape& shape = plan_.cells[cell_].shape;
    add_box(std::vector<Dim>(shape.size(), 0), shape, is_store);
  }

  void add(const Store& store) {
    if (store.target == cell_) add_box(store.offsets, plan_.cells[store.part].shape, true);
    if (store.part == cell_) add_all(false);
  }
  void add(const Bind& bind) {
    variables.insert(bind.variable.name);
    if (bind.cell == cell_) add_all(false);
  }
  void add(const Repeat& repeat) {
    variables.insert(repeat.counter.name);
    add(std::span(repeat.body));
  }
  void add(const Compute& compute) {
    const Graph& graph = compute.graph;
    if (contains(compute.outputs, cell_)) {
      if (compute.offsets)
        add_box(*compute.offsets, graph[graph.outputs[0]].shape(), true);
      else
        add_all(true);
    }
    const auto is_cell = [&](Value v) {
      const auto* placeholder = graph[v].as<graph::Placeholder>();
      return placeholder && compute.inputs[placeholder->index] == cell_;
    };
    if (std::any_of(graph.outputs.begin(), graph.outputs.end(), is_cell)) add_all(false);
    for (const Node& node : graph.nodes) {
      if (std::none_of(node.inputs.begin(), node.inputs.end(), is_cell)) continue;
      if (const auto* shrink = node.as<graph::Shrink>())
        found.push_back({shrink->limits, false});
      else
        add_all(false);
    }
  }

  const LoopPlan& plan_;
  const size_t cell_;
};

// The size in another iteration, in which the loop's counter is `counter`, and the variables that
// its statements declare have other values.
Dim in_other_iteration(const Dim& size, const SymVar& loop, const Dim& counter,
                       const std::set<std::string>& variables) {
  Dim result = size.offset();
  for (const Dim::Term& term : size.terms()) {
    SymVar var = term.var;
    if (variables.contains(var.name)) var.name += "'";
    result += (var.name == loop.name ? counter : Dim(var)) * term.coefficient;
  }
  return result;
}

// Whether no iteration touches elements of the cell that another one stores to. Of two iterations,
// one has the greater counter.
bool is_touched_apart(const LoopPlan& plan, size_t cell, const Repeat& repeat) {
  constexpr size_t kMostAccesses = 64;
  Accesses accesses(plan, cell);
  accesses.add(std::span(repeat.body));
  if (accesses.found.size() > kMostAccesses) return false;
  const SymVar& loop = repeat.counter;
  const int64_t step = std::abs(repeat.step);
  const int64_t most = loop.max_val - loop.min_val - step;
  if (most < 0) return true;  // one iteration
  const Dim later = Dim(loop) + Dim(SymVar{loop.name + "'", 0, most}) + step;
  const auto are_apart = [&](const Access& a, const Access& b) {
    for (size_t d = 0; d < a.box.size(); ++d) {
      const auto at = [&](const Dim& size) {
        return in_other_iteration(size, loop, later, accesses.variables);
      };
      if (always_at_most(a.box[d].second, at(b.box[d].first)) ||
          always_at_most(at(b.box[d].second), a.box[d].first))
        return true;
    }
    return false;
  };
  for (const Access& a : accesses.found)
    for (const Access& b : accesses.found)
      if ((a.is_store || b.is_store) && !are_apart(a, b)) return false;
  return true;
}

// Whether iterations of the loop, with so many loops around it, may run side by side. What belongs
// to an iteration, each has for itself.
bool may_run_apart(const LoopPlan& plan, const Repeat& repeat, size_t depth) {
  if (repeat.goes_on) return false;
  const std::set<size_t> stored = cells_of(repeat.body).stored;
  return std::all_of(stored.begin(), stored.end(), [&](size_t cell) {
    return plan.cells[cell].depth > depth || is_touched_apart(plan, cell, repeat);
  });
}

bool are_independent(const LoopPlan& plan) {
  const std::vector<Statement>& statements = plan.statements;
  const auto* repeat =
      statements.empty() ? nullptr : std::get_if<Repeat>(&statements.back().action);
  if (!repeat) return false;
  for (size_t s = 0; s + 1 < statements.size(); ++s)
    if (!begins_output(plan, statements[s]) && !fills_own_cells(plan, statements[s])) return false;
  return may_run_apart(plan, *repeat, 0);
}

}  // namespace

CellUse cells_of(std::span<const Statement> statements) {
  CellUse cells;
  collect(statements, cells);
  return cells;
}

Dim span_of(const LoopRange& range) {
  return range.step > 0 ? range.stop - range.start : range.start - range.stop;
}

std::vector<int64_t> side_by_side(const LoopPlan& plan, const Repeat& repeat, size_t depth) {
  std::vector<int64_t> counts;
  std::set<std::string> counters;  // of these loops
  const Repeat* next = &repeat;
  while (next && may_run_apart(plan, *next, depth + counts.size())) {
    const Dim span = span_of(*next);
    const auto depends = [&](const std::string& counter) {
      return next->start.depends_on(counter) || span.depends_on(counter);
    };
    if (std::any_of(counters.begin(), counters.end(), depends)) break;
    const int64_t step = std::abs(next->step);
    counts.push_back((std::max<int64_t>(span.bound(), 0) + step - 1) / step);
    counters.insert(next->counter.name);
    next = next->body.size() == 1 ? std::get_if<Repeat>(&next->body[0].action) : nullptr;
  }
  return counts;
}

void find_parallel_iterations(LoopPlan& plan) {
  plan.is_parallel = are_independent(plan);
  std::vector<Statement> others;
  bool is_start = true;  // of the plan: what comes before a copy does not touch its output
  for (Statement& statement : plan.statements) {
    is_start &= begins_output(plan, statement) || fills_own_cells(plan, statement);
    if (is_start && begins_output(plan, statement) &&
        (plan.is_parallel || is_large(plan, statement))) {
      const auto& store = std::get<Store>(statement.action);
      plan.copies.emplace_back(*plan.cells[store.target].output, *plan.cells[store.part].input);
    } else {
      others.push_back(std::move(statement));
    }
  }
  plan.statements = std::move(others);
}

}  // namespace rune::driver
