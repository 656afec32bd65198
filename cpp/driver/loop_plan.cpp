#include "driver/loop_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/error.h"
#include "driver/covered_copies.h"
#include "driver/parallel_iterations.h"
#include "graph/builder.h"
#include "graph/loops.h"
#include "graph/passes/rewrite.h"
#include "graph/search.h"

namespace rune::driver {

namespace {

using graph::Graph;
using graph::LoopTree;
using graph::Node;
using graph::Value;
using Nodes = std::set<uint32_t>;

class Planner {
 public:
  explicit Planner(const Graph& nest)
      : graph_(nest), tree_(nest), users_(nest.size()), variables_(nest.symbolic_vars()) {
    for (uint32_t id = 0; id < nest.size(); ++id)
      for (const Value v : nest.nodes[id].inputs) users_[v.id].push_back(id);
  }

  LoopPlan run() {
    const std::vector<Value> inputs = graph_.inputs();
    for (size_t i = 0; i < inputs.size(); ++i) {
      const size_t cell = add_cell(inputs[i]);
      plan_.cells[cell].input = i;
      hold(cell, inputs[i]);
    }
    statements_ = &plan_.statements;
    plan(tree_.outside());
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      const std::optional<size_t> cell = cell_of(graph_.outputs[i]);
      RUNE_CHECK(cell && !plan_.cells[*cell].input, "a result of loops has no memory of its own");
      plan_.cells[*cell].output = i;
    }
    find_parallel_iterations(plan_);
    find_covered_copies(plan_);
    return std::move(plan_);
  }

 private:
  // Cells.

  size_t add_cell(Value v) {
    plan_.cells.push_back({graph_[v].dtype(), graph_[v].shape()});
    plan_.cells.back().depth = counters_.size();
    held_.emplace_back();
    depths_.push_back(counters_.size());
    return plan_.cells.size() - 1;
  }
  void hold(size_t cell, std::optional<Value> v) {
    held_[cell] = v;
    if (v) cells_[*v] = cell;
  }
  // The cell that has the value now, if there is one.
  std::optional<size_t> cell_of(Value v) const {
    const auto known = cells_.find(v);
    if (known == cells_.end() || held_[known->second] != v) return std::nullopt;
    return known->second;
  }
  // Whether other values may be stored to a cell. They may not be stored to inputs, or to cells
  // from outside of the loop that is planned.
  bool is_own(size_t cell) const {
    return !plan_.cells[cell].input && depths_[cell] == counters_.size();
  }

  void add(auto action) { statements_->emplace_back().action = std::move(action); }

  void copy(size_t to, size_t from) {
    add(Store{to, std::vector<Dim>(plan_.cells[to].shape.size(), 0), from});
  }

  // Computes values that no cell has yet. Each gets a cell.
  void store(std::vector<Value> wanted) {
    std::erase_if(wanted, [&](Value v) { return cell_of(v).has_value(); });
    std::sort(wanted.begin(), wanted.end());
    wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
    if (wanted.empty()) return;
    Compute compute;
    compute.graph = graph_of(wanted, compute.inputs);
    for (const Value v : wanted) {
      compute.outputs.push_back(add_cell(v));
      hold(compute.outputs.back(), v);
    }
    add(std::move(compute));
  }

  // Computes a value that no cell has yet, and stores it to a part of this cell.
  void store_part(Value v, size_t cell, std::vector<Dim> offsets) {
    Compute compute;
    compute.graph = graph_of({v}, compute.inputs);
    compute.outputs = {cell};
    compute.offsets = std::move(offsets);
    add(std::move(compute));
  }

  // Whether computing `v` reads `from`, which is in a cell.
  bool reads(Value v, Value from) const {
    bool found = false;
    graph::search(graph_, {v}, [&](Value next) {
      found |= next == from;
      return !found && !cell_of(next);
    });
    return found;
  }

  // Whether the axis of an element can be identified: no symbolic size may be bounded by 1.
  bool has_places(Value v) const {
    const Shape& shape = graph_[v].shape();
    return std::all_of(shape.begin(), shape.end(),
                       [](const Dim& size) { return size.is_constant() || size.bound() > 1; });
  }

  // Whether each element of `v` depends on no other element of `from` than the one at its own
  // position, if v's first element is at the position `offsets`.
  bool reads_in_place(Value v, Value from, const std::vector<Dim>& offsets) const {
    using Place = std::pair<Value, Ints>;  // a value, and for each of its axes the axis of v
    std::set<Place> seen;
    std::vector<Place> open{{v, {}}};
    for (size_t d = 0; d < offsets.size(); ++d)
      open.front().second.push_back(static_cast<int64_t>(d));
    while (!open.empty()) {
      const auto [next, axes] = open.back();
      open.pop_back();
      if (!reads(next, from) || !seen.emplace(next, axes).second) continue;
      const Node& node = graph_[next];
      const auto* shrink = node.as<graph::Shrink>();
      if (next == from || (shrink && node.inputs[0] == from)) {
        if (node.shape() != graph_[v].shape()) return false;
        for (size_t d = 0; d < offsets.size(); ++d)
          if ((next == from ? Dim(0) : shrink->limits[d].first) != offsets[d] ||
              (axes[d] != static_cast<int64_t>(d) && node.shape()[d] != Dim(1)))
            return false;
        continue;
      }
      const std::optional<Ints> axes_before = axes_of_operands(node, axes);
      if (!axes_before) return false;
      for (const Value operand : node.inputs) open.emplace_back(operand, *axes_before);
    }
    return true;
  }

  // For a node whose elements depend on one element of each operand: the axes of the operands, if
  // the node's axes are these. Nothing for other nodes. An axis of size 1 may be any axis.
  std::optional<Ints> axes_of_operands(const Node& node, const Ints& axes) const {
    if (node.as<graph::Unary>() || node.as<graph::Binop>() || node.as<graph::Ternary>() ||
        node.as<graph::Cast>() || node.as<graph::Bitcast>())
      return axes;
    if (const auto* permute = node.as<graph::Permute>()) {
      Ints result(axes.size());
      for (size_t d = 0; d < axes.size(); ++d) result[permute->axes[d]] = axes[d];
      return result;
    }
    if (!node.as<graph::Reshape>()) return std::nullopt;
    const Shape &to = node.shape(), &from = graph_[node.inputs[0]].shape();
    Ints result;
    size_t next = 0;
    const auto skip_ones = [&] {
      while (next < to.size() && to[next] == Dim(1)) ++next;
    };
    for (const Dim& size : from) {
      result.push_back(-1);
      if (size == Dim(1)) continue;
      skip_ones();
      if (next == to.size() || to[next] != size) return std::nullopt;
      result.back() = axes[next++];
    }
    skip_ones();
    return next == to.size() ? std::optional(result) : std::nullopt;
  }

  // A graph that computes the values from the present cells.
  Graph graph_of(const std::vector<Value>& wanted, std::vector<size_t>& inputs) const {
    Nodes needed;
    graph::search(graph_, wanted, [&](Value v) {
      needed.insert(v.id);
      return !cell_of(v);
    });
    graph::Builder builder;
    std::map<std::string, Value> variables;
    for (const auto* known : {&variables_, &counters_, &bound_})
      for (const SymVar& variable : *known)
        variables[variable.name] = builder.add(graph::Define_Var{variable}, {});
    std::map<Value, Value> map;
    for (const uint32_t id : needed) {
      const Value v{id};
      const Node& node = graph_[v];
      builder.set_location(node.location);
      if (const std::optional<size_t> cell = cell_of(v)) {
        inputs.push_back(*cell);
        map[v] = builder.placeholder(node.dtype(), node.shape());
        continue;
      }
      if (const SymVar* variable = graph::declared_variable(node)) {
        map[v] = variables.at(variable->name);
        continue;
      }
      RUNE_CHECK(is_pure(node),
                 "a value of a loop is read after it is gone: ", name_of(node.kind()));
      std::vector<Value> operands;
      for (const Value operand : node.inputs) operands.push_back(map.at(operand));
      map[v] = builder.copy(node, std::move(operands));
    }
    std::vector<Value> outputs;
    for (const Value v : wanted) outputs.push_back(map.at(v));
    builder.set_outputs(std::move(outputs));
    return builder.take();
  }

  // Whether the node can be computed at any time from its operands.
  static bool is_pure(const Node& node) {
    return !node.as<graph::Placeholder>() && !node.as<graph::Carry>() &&
           !node.as<graph::Update>() && !node.as<graph::End_Loop>() &&
           !node.as<graph::Loop_Result>();
  }

  // Statements, in order.

  void plan(const std::vector<uint32_t>& members) {
    for (const uint32_t id : members) {
      if (graph_.nodes[id].as<graph::Update>()) update({id});
      if (graph_.nodes[id].as<graph::Loop_Size>()) bind({id});
      if (graph_.nodes[id].as<graph::End_Loop>()) run_loop({id});
    }
  }

  void bind(Value size) {
    const Value value = graph_[size].inputs[0];
    store({value});
    bound_.push_back(graph_[size].as<graph::Loop_Size>()->var);
    add(Bind{bound_.back(), *cell_of(value)});
  }

  // Whether a use of a value comes after node `now`. `inside` has the nodes of the loop that node
  // `now` ends.
  static bool is_later(uint32_t user, Value now, const Nodes& inside) {
    return user > now.id || inside.contains(user);
  }
  bool is_needed_after(Value v, Value now, const Nodes& inside) const {
    const Node& node = graph_[now];
    const auto is_need = [&](uint32_t id) {
      const Node& user = graph_.nodes[id];
      // A loop needs its initial values only once, when it begins.
      const bool begins =
          user.as<graph::Carry>() && node.as<graph::End_Loop>() && user.inputs[1] == node.inputs[0];
      return !begins && is_later(id, now, inside);
    };
    return std::any_of(users_[v.id].begin(), users_[v.id].end(), is_need) || is_final(v, node);
  }
  // Whether the node ends a loop that carries the value to the next iteration.
  static bool is_final(Value v, const Node& node) {
    if (!node.as<graph::End_Loop>()) return false;
    const auto first = node.inputs.begin() + 1;
    const auto last = first + static_cast<int64_t>(num_carried(node));
    return std::find(first, last, v) != last;
  }

  // The values that are computed from `v` and are needed after v's cell gets another value.
  std::vector<Value> computed_before(Value v, Value now, const Nodes& inside) const {
    std::vector<Value> result, open{v};
    Nodes seen;
    while (!open.empty()) {
      const Value from = open.back();
      open.pop_back();
      for (const uint32_t user : users_[from.id]) {
        if (is_later(user, now, inside) || user == now.id || cell_of({user}) ||
            !is_pure(graph_.nodes[user]) || !seen.insert(user).second)
          continue;
        if (is_needed_after({user}, now, inside)) result.push_back({user});
        open.push_back({user});
      }
    }
    return result;
  }

  void update(Value now) {
    const Value target = graph_[now].inputs[0], part = graph_[now].inputs[1];
    const std::vector<Dim>& offsets = graph_[now].as<graph::Update>()->offsets;
    store({target});
    const bool stays = is_needed_after(target, now, {});
    if (!stays) store(computed_before(target, now, {}));
    size_t cell = *cell_of(target);
    const bool moves = stays || !is_own(cell);
    if (moves) {
      const size_t fresh = add_cell(target);
      copy(fresh, cell);
      cell = fresh;
    }
    if (max_elements(graph_[part].shape()) > 0) {
      const bool direct = !cell_of(part) && users_[part.id].size() == 1 && has_places(part) &&
                          (moves || reads_in_place(part, target, offsets));
      if (direct) {
        store_part(part, cell, offsets);
      } else {
        store({part});
        add(Store{cell, offsets, *cell_of(part)});
      }
    }
    hold(cell, now);
  }

  Nodes nodes_of(const LoopTree::Loop& loop) const {
    Nodes nodes(loop.members.begin(), loop.members.end());
    for (const uint32_t id : loop.members)
      if (graph_.nodes[id].as<graph::End_Loop>()) nodes.merge(nodes_of(tree_.ended_by({id})));
    return nodes;
  }

  // The value of which `v` is a movement, or `v` itself.
  Value moved(Value v) const {
    while (!cell_of(v) && graph::is_movement(graph_[v].kind())) v = graph_[v].inputs[0];
    return v;
  }

  // The computed values that a loop reads and does not change. They are stored, so that they are
  // computed only once.
  std::vector<Value> invariants(const Nodes& inside, Value end) const {
    std::vector<Value> result;
    const auto add_operands = [&](const Node& node) {
      for (const Value v : node.inputs) {
        const Value from = moved(v);
        if (!inside.contains(from.id) && graph::is_computed(graph_[from]) &&
            !graph::declared_variable(graph_[from]))
          result.push_back(from);
      }
    };
    for (const uint32_t id : inside) add_operands(graph_.nodes[id]);
    add_operands(graph_[end]);
    return result;
  }

  void run_loop(Value end) {
    const LoopTree::Loop& loop = tree_.ended_by(end);
    const Node& node = graph_[end];
    const size_t count = num_carried(node);
    const Nodes inside = nodes_of(loop);
    const auto final_of = [&](size_t k) { return node.inputs[1 + k]; };
    const auto initial_of = [&](size_t k) { return node.inputs[1 + count + k]; };
    std::vector<Value> wanted = invariants(inside, end);
    for (size_t k = 0; k < count; ++k) wanted.push_back(initial_of(k));
    store(std::move(wanted));

    // The cell of each carried value. If the loop changes a cell whose value is still needed, the
    // value is saved before.
    std::vector<size_t> cells(count);
    std::vector<bool> in_place(count);
    std::set<size_t> taken;
    std::vector<Value> saved;
    for (size_t k = 0; k < count; ++k) {
      const Value initial = initial_of(k);
      const size_t cell = *cell_of(initial);
      in_place[k] =
          is_own(cell) && !is_needed_after(initial, end, inside) && taken.insert(cell).second;
      cells[k] = cell;
      if (in_place[k])
        for (const Value v : computed_before(initial, end, inside)) saved.push_back(v);
    }
    store(std::move(saved));
    for (size_t k = 0; k < count; ++k) {
      if (in_place[k]) continue;
      const size_t fresh = add_cell(initial_of(k));
      copy(fresh, cells[k]);
      cells[k] = fresh;
    }
    for (size_t k = 0; k < count; ++k) hold(cells[k], std::nullopt);
    for (const uint32_t id : inside) {
      const auto* carry = graph_.nodes[id].as<graph::Carry>();
      if (carry && graph_.nodes[id].inputs[1] == node.inputs[0])
        hold(cells[carry->index], Value{id});
    }

    const auto& range = *node.as<graph::End_Loop>();
    Repeat repeat{{loop.counter, range.start, range.stop, range.step, {}}, {}};
    if (range.goes_on) repeat.goes_on = cells[*range.goes_on];
    std::vector<Statement>* const around = std::exchange(statements_, &repeat.body);
    counters_.push_back(loop.counter);
    const size_t num_bound = bound_.size();
    std::vector<size_t> depths = depths_;
    for (const size_t cell : cells) depths_[cell] = counters_.size();
    plan(loop.members);
    std::vector<Value> finals;
    for (size_t k = 0; k < count; ++k) finals.push_back(final_of(k));
    carry_on(finals, cells);
    counters_.pop_back();
    bound_.resize(num_bound);
    std::copy(depths.begin(), depths.end(), depths_.begin());
    statements_ = around;
    add(std::move(repeat));

    // Values that the body stores do not exist if the loop has no iteration.
    for (size_t c = depths.size(); c < held_.size(); ++c) hold(c, std::nullopt);
    for (const size_t cell : cells) hold(cell, std::nullopt);
    for (const uint32_t id : users_[end.id])
      if (const auto* result = graph_.nodes[id].as<graph::Loop_Result>())
        hold(cells[result->index], Value{id});
  }

  // Stores the final values of an iteration to the cells of the carried values.
  void carry_on(const std::vector<Value>& finals, const std::vector<size_t>& cells) {
    std::vector<size_t> direct;
    for (size_t k = 0; k < cells.size(); ++k)
      if (may_replace(finals, k, cells[k])) direct.push_back(k);
    std::vector<Value> others;
    for (size_t k = 0; k < cells.size(); ++k)
      if (!contains(direct, k)) others.push_back(finals[k]);
    store(std::move(others));
    for (const size_t k : direct) {
      store_part(finals[k], cells[k], std::vector<Dim>(graph_[finals[k]].shape().size(), 0));
      hold(cells[k], finals[k]);
    }
    std::vector<std::pair<size_t, size_t>> copies;  // (to, from)
    for (size_t k = 0; k < cells.size(); ++k) {
      size_t from = *cell_of(finals[k]);
      if (from == cells[k]) continue;
      // Another carried value's cell may change before it is read.
      if (contains(cells, from)) {
        const size_t fresh = add_cell(finals[k]);
        copy(fresh, from);
        from = fresh;
      }
      copies.emplace_back(cells[k], from);
    }
    for (const auto& [to, from] : copies) copy(to, from);
  }

  // Whether final value k can be computed into the cell of the value carried so far: it reads that
  // value in place, and no other final value reads it.
  bool may_replace(const std::vector<Value>& finals, size_t k, size_t cell) const {
    if (cell_of(finals[k]) || max_elements(graph_[finals[k]].shape()) == 0) return false;
    if (!has_places(finals[k])) return false;
    if (std::count(finals.begin(), finals.end(), finals[k]) > 1) return false;
    if (!held_[cell]) return true;
    const Value carried = *held_[cell];
    for (size_t j = 0; j < finals.size(); ++j)
      if (j != k && reads(finals[j], carried)) return false;
    return reads_in_place(finals[k], carried, std::vector<Dim>(graph_[carried].shape().size(), 0));
  }

  const Graph& graph_;
  const LoopTree tree_;
  std::vector<std::vector<uint32_t>> users_;  // by node
  LoopPlan plan_;
  std::vector<Statement>* statements_ = nullptr;  // where the next statement is added
  const std::vector<SymVar> variables_;           // of the program
  std::vector<SymVar> counters_;                  // of the loops around the next statement
  std::vector<SymVar> bound_;                     // by Binds in these loops
  std::vector<std::optional<Value>> held_;        // by cell: its present value
  std::map<Value, size_t> cells_;                 // the last cell of each value
  std::vector<size_t> depths_;  // by cell: the number of loops around statements that store to it
};

}  // namespace

bool is_whole(const LoopPlan& plan, const Store& store) {
  const Cell &target = plan.cells[store.target], &part = plan.cells[store.part];
  return target.shape == part.shape && target.dtype == part.dtype && is_constant(part.shape) &&
         max_elements(part.shape) > 0 &&
         store.offsets == std::vector<Dim>(part.shape.size(), Dim(0));
}

LoopPlan plan_loops(const Graph& nest) {
  return Planner(nest).run();
}

}  // namespace rune::driver
