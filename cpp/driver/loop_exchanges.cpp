#include "driver/loop_exchanges.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <variant>

namespace rune::driver {

namespace {

// The most cells of an Exchange. With a prime number of cells, copies can bring the values back one
// after the other.
constexpr size_t kMostCells = 3;

enum class Use { None, Replaced, Other };

// The first use of a cell by the statements.
Use first_use(const LoopPlan& plan, const std::vector<Statement>& statements, size_t cell);

struct FirstUse {
  const LoopPlan& plan;
  const size_t cell;

  Use operator()(const Compute& compute) const {
    const auto has = [&](const std::vector<size_t>& cells) { return contains(cells, cell); };
    if (has(compute.inputs)) return Use::Other;
    if (!has(compute.outputs)) return Use::None;
    return compute.offsets ? Use::Other : Use::Replaced;
  }
  Use operator()(const Store& store) const {
    if (store.part == cell) return Use::Other;
    if (store.target != cell) return Use::None;
    return is_whole(plan, store) ? Use::Replaced : Use::Other;
  }
  Use operator()(const Bind& bind) const { return bind.cell == cell ? Use::Other : Use::None; }
  Use operator()(const Repeat& repeat) const {  // the loop may have no iteration
    if (repeat.goes_on == cell) return Use::Other;
    return first_use(plan, repeat.body, cell) == Use::None ? Use::None : Use::Other;
  }
};

Use first_use(const LoopPlan& plan, const std::vector<Statement>& statements, size_t cell) {
  for (const Statement& statement : statements)
    if (const Use use = std::visit(FirstUse{plan, cell}, statement.action); use != Use::None)
      return use;
  return Use::None;
}

// Whether statements outside of the loop use a cell.
bool is_used_outside(const LoopPlan& plan, const std::vector<Statement>& statements,
                     const Repeat& loop, size_t cell) {
  return std::any_of(statements.begin(), statements.end(), [&](const Statement& statement) {
    const auto* repeat = std::get_if<Repeat>(&statement.action);
    if (!repeat) return std::visit(FirstUse{plan, cell}, statement.action) != Use::None;
    if (repeat == &loop) return false;
    return repeat->goes_on == cell || is_used_outside(plan, repeat->body, loop, cell);
  });
}

class Finder {
 public:
  Finder(const LoopPlan& plan, const Repeat& repeat) : plan_(plan), repeat_(repeat) {}

  Exchanges run() {
    const std::vector<Statement>& body = repeat_.body;
    Exchanges result;
    size_t end = body.size();  // where the copies at the end of the body begin
    for (; end > 0; --end) {
      const auto* store = std::get_if<Store>(&body[end - 1].action);
      if (!store || !is_whole(plan_, *store)) break;
    }
    // By cell: the cell whose value it has after the copies.
    std::map<size_t, size_t> from;
    const auto holds = [&](size_t cell) { return from.contains(cell) ? from.at(cell) : cell; };
    for (size_t i = end; i < body.size(); ++i) {
      const Store& store = std::get<Store>(body[i].action);
      from[store.target] = holds(store.part);
    }
    std::map<size_t, size_t> copies;
    for (const auto& [to, cell] : from)
      if (!is_fresh(to)) copies[to] = cell;

    std::set<size_t> exchanged;
    for (const auto& [to, cell] : copies) {
      if (copies.contains(cell)) continue;
      const std::optional<Exchange> cells = chain_to(copies, cell);
      if (!cells) continue;
      result.cells.push_back(*cells);
      result.num_turns = std::lcm(result.num_turns, cells->size());
      exchanged.insert(cells->begin(), cells->end());
    }
    for (size_t i = 0; i < body.size(); ++i) {
      const auto* store = i < end ? nullptr : std::get_if<Store>(&body[i].action);
      if (store && (exchanged.contains(store->target) || serves_only(exchanged, copies, store)))
        continue;
      if (store && exchanged.contains(store->part)) return all_copies();
      result.statements.push_back(i);
    }
    return result;
  }

 private:
  Exchanges all_copies() const {
    Exchanges result;
    result.statements.resize(repeat_.body.size());
    std::iota(result.statements.begin(), result.statements.end(), size_t{0});
    return result;
  }

  // Whether each iteration fills the cell before reading it, and nothing else uses it.
  bool is_fresh(size_t cell) const {
    const Cell& of = plan_.cells[cell];
    return !of.input && !of.output && repeat_.goes_on != cell &&
           first_use(plan_, repeat_.body, cell) == Use::Replaced &&
           !is_used_outside(plan_, plan_.statements, repeat_, cell);
  }

  // A chain of cells, each of which gets the value of the next one by a copy. It ends with `last`.
  std::optional<Exchange> chain_to(const std::map<size_t, size_t>& copies, size_t last) const {
    if (!is_fresh(last)) return std::nullopt;
    Exchange cells{last};
    for (std::optional<size_t> before = last; before;) {
      const size_t cell = *before;
      before.reset();
      for (const auto& [to, from] : copies) {
        if (from != cell) continue;
        if (before || repeat_.goes_on == to || plan_.cells[to].input) return std::nullopt;
        before = to;
        cells.insert(cells.begin(), to);
        if (cells.size() > kMostCells) return std::nullopt;
      }
    }
    return cells;
  }

  // Whether the store only saves the value of an exchanged cell for a later copy.
  static bool serves_only(const std::set<size_t>& exchanged, const std::map<size_t, size_t>& copies,
                          const Store* store) {
    return !copies.contains(store->target) && exchanged.contains(store->part);
  }

  const LoopPlan& plan_;
  const Repeat& repeat_;
};

}  // namespace

Exchanges find_exchanges(const LoopPlan& plan, const Repeat& repeat) {
  return Finder(plan, repeat).run();
}

}  // namespace rune::driver
