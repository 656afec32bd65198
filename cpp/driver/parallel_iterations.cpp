#include "driver/parallel_iterations.h"

#include <algorithm>
#include <cstdlib>
#include <map>
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

// Whether a statement copies an input to an output of known size. (Memory of a symbolic size may be
// only as long as the size in this run.)
bool begins_output(const LoopPlan& plan, const Statement& statement) {
  const auto* store = std::get_if<Store>(&statement.action);
  return store && plan.cells[store->target].output && plan.cells[store->part].input &&
         is_constant(plan.cells[store->part].shape);
}
// Whether a copy is so large that it is better a step of its own than done by one thread of the
// loops.
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
  size_t position = 0;       // of the statement in the loop's body
  bool is_repeated = false;  // whether that statement is a loop
};

// The accesses of statements to a cell, and the variables that the statements declare.
class Accesses {
 public:
  Accesses(const LoopPlan& plan, size_t cell) : plan_(plan), cell_(cell) {}

  void add_body(std::span<const Statement> statements) {
    for (; position_ < statements.size(); ++position_) add(statements.subspan(position_, 1));
  }

  std::vector<Access> found;
  std::set<std::string> variables;

 private:
  void add(std::span<const Statement> statements) {
    for (const Statement& statement : statements)
      std::visit([this](const auto& action) { add(action); }, statement.action);
  }

  void add_access(std::vector<std::pair<Dim, Dim>> box, bool is_store) {
    found.push_back({std::move(box), is_store, position_, num_loops_ > 0});
  }
  void add_box(const std::vector<Dim>& first, const Shape& shape, bool is_store) {
    std::vector<std::pair<Dim, Dim>> box;
    for (size_t d = 0; d < shape.size(); ++d) box.emplace_back(first[d], first[d] + shape[d]);
    add_access(std::move(box), is_store);
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
    ++num_loops_;
    add(std::span(repeat.body));
    --num_loops_;
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
        add_access(shrink->limits, false);
      else
        add_all(false);
    }
  }

  const LoopPlan& plan_;
  const size_t cell_;
  size_t position_ = 0;
  int num_loops_ = 0;  // the number of loops, inside of the body, around the present statement
};

// The size in another iteration. There, the loop's counter is `counter`, and the variables that
// statements declare have other values.
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

// The accesses of a loop's iterations to a cell.
class CellInLoop {
 public:
  CellInLoop(const LoopPlan& plan, size_t cell, const Repeat& repeat)
      : loop_(repeat.counter), is_reversed_(repeat.step < 0), accesses_(plan, cell) {
    accesses_.add_body(std::span(repeat.body));
    const int64_t step = std::abs(repeat.step);
    const int64_t most = loop_.max_val - loop_.min_val - step;
    is_single_ = most < 0;
    greater_ = Dim(loop_) + Dim(SymVar{loop_.name + "'", 0, std::max<int64_t>(most, 0)}) + step;
  }

  // Whether no iteration accesses elements that another one stores to. It is enough to check pairs
  // in which the second iteration has the greater counter.
  bool is_touched_apart() const {
    return holds_for_pairs([&](const Access& a, const Access& b) {
      return (!a.is_store && !b.is_store) || are_apart(a, b, greater_);
    });
  }

  // Whether all iterations may read the cell's value before the loop: they store to different
  // elements, and every read of an element comes before the store to it.
  bool is_read_as_before() const {
    return holds_for_pairs([&](const Access& a, const Access& b) {
      if (a.is_store && b.is_store) return are_apart(a, b, greater_);
      if (!a.is_store || b.is_store) return true;
      const bool is_earlier =
          b.position < a.position || (b.position == a.position && !a.is_repeated);
      return is_read_later_apart(a, b) && (is_earlier || are_apart(a, b, Dim(loop_)));
    });
  }

 private:
  bool holds_for_pairs(const auto& condition) const {
    constexpr size_t kMostAccesses = 64;
    const std::vector<Access>& all = accesses_.found;
    if (all.size() > kMostAccesses) return false;
    return std::all_of(all.begin(), all.end(), [&](const Access& a) {
      return std::all_of(all.begin(), all.end(), [&](const Access& b) { return condition(a, b); });
    });
  }

  // Whether no later iteration reads elements that an earlier one stores.
  bool is_read_later_apart(const Access& store, const Access& read) const {
    return is_reversed_ ? are_apart(read, store, greater_) : are_apart(store, read, greater_);
  }

  // Whether access `a` in an iteration and access `b` in the iteration with this counter are to
  // different elements. Even if it is the same iteration, iterations of loops inside of it may
  // differ.
  bool are_apart(const Access& a, const Access& b, const Dim& counter) const {
    if (is_single_ && counter != Dim(loop_)) return true;
    for (size_t d = 0; d < a.box.size(); ++d) {
      const auto at = [&](const Dim& size) {
        return in_other_iteration(size, loop_, counter, accesses_.variables);
      };
      if (always_at_most(a.box[d].second, at(b.box[d].first)) ||
          always_at_most(at(b.box[d].second), a.box[d].first))
        return true;
    }
    return false;
  }

  const SymVar loop_;
  const bool is_reversed_;
  bool is_single_ = false;  // whether there is at most one iteration
  Dim greater_;             // the counter of another iteration with a greater counter
  Accesses accesses_;
};

// Whether iterations of the loop, which is inside of `depth` loops, may run at the same time. Each
// iteration has its own copy of cells that belong to an iteration. If all iterations may read a
// cell of `beginnings` as it is before the loop, the cell is added to `as_before`.
bool may_run_apart(const LoopPlan& plan, const Repeat& repeat, size_t depth,
                   const std::map<size_t, size_t>& beginnings, std::set<size_t>& as_before) {
  if (repeat.goes_on) return false;
  const std::set<size_t> stored = cells_of(repeat.body).stored;
  return std::all_of(stored.begin(), stored.end(), [&](size_t cell) {
    if (plan.cells[cell].depth > depth) return true;
    const CellInLoop accesses(plan, cell, repeat);
    if (accesses.is_touched_apart()) return true;
    if (!beginnings.contains(cell) || !accesses.is_read_as_before()) return false;
    as_before.insert(cell);
    return true;
  });
}

// Whether iterations of the last statement may run at the same time. Sets LoopPlan::as_before if
// so.
bool find_independence(LoopPlan& plan) {
  const std::vector<Statement>& statements = plan.statements;
  const auto* repeat =
      statements.empty() ? nullptr : std::get_if<Repeat>(&statements.back().action);
  if (!repeat) return false;
  std::map<size_t, size_t> beginnings;  // by output: the input that is copied to it
  const std::set<size_t> stored = cells_of(repeat->body).stored;
  for (size_t s = 0; s + 1 < statements.size(); ++s) {
    if (begins_output(plan, statements[s])) {
      const auto& store = std::get<Store>(statements[s].action);
      beginnings.insert_or_assign(store.target, store.part);
      continue;
    }
    // Each core runs this statement for itself, while others may already run iterations. So it may
    // not read cells that iterations store.
    const std::set<size_t> read = cells_of({&statements[s], 1}).read;
    if (!fills_own_cells(plan, statements[s]) ||
        std::any_of(read.begin(), read.end(), [&](size_t c) { return stored.contains(c); }))
      return false;
  }
  std::set<size_t> as_before;
  if (!may_run_apart(plan, *repeat, 0, beginnings, as_before)) return false;
  std::erase_if(beginnings, [&](const auto& pair) { return !as_before.contains(pair.first); });
  plan.as_before = std::move(beginnings);
  return true;
}

}  // namespace

void read_from(std::vector<Statement>& statements, const std::map<size_t, size_t>& others) {
  const auto replace = [&](size_t& cell) {
    if (const auto other = others.find(cell); other != others.end()) cell = other->second;
  };
  for (Statement& statement : statements) {
    if (auto* store = std::get_if<Store>(&statement.action)) replace(store->part);
    if (auto* bind = std::get_if<Bind>(&statement.action)) replace(bind->cell);
    if (auto* repeat = std::get_if<Repeat>(&statement.action)) read_from(repeat->body, others);
    if (auto* compute = std::get_if<Compute>(&statement.action))
      std::for_each(compute->inputs.begin(), compute->inputs.end(), replace);
  }
}

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
  std::set<size_t> none;
  while (next && may_run_apart(plan, *next, depth + counts.size(), {}, none)) {
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
  plan.is_parallel = find_independence(plan);
  std::vector<Statement> others;
  bool is_start = true;  // whether no statement so far could have used the copy's output
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
