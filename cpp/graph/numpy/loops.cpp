#include "graph/numpy/loops.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "alu/eval.h"
#include "graph/attribute_dims.h"
#include "graph/numpy/integer_ranges.h"
#include "graph/numpy/ufuncs.h"
#include "graph/search.h"

namespace rune::graph::numpy {

namespace {

// The Loop_Counter that declares a counter.
Value declaration(const TracedGraph& t, const Dim& counter) {
  RUNE_CHECK(counter.terms().size() == 1, "not the counter of a loop: ", counter);
  return t.sizes.at(counter.terms()[0].var.name);
}

CheckScope scope_now(const TracedGraph& t) {
  return {t.checks.size(), t.open_conditions.size(), t.must_fit.size(), t.checked};
}

CheckScope close(std::vector<CheckScope>& open) {
  CheckScope scope = std::move(open.back());
  open.pop_back();
  return scope;
}

std::string new_name(const TracedGraph& t) {
  std::string name;
  for (size_t i = t.size(); name.empty() || t.sizes.contains(name); ++i) name = concat("i", i);
  return name;
}

}  // namespace

Dim begin_loop(TracedGraph& t, int64_t low, int64_t high) {
  const std::string name = new_name(t);
  const SymVar var{name, low, high};
  t.sizes[name] = t.add(Loop_Counter{var}, {});
  t.open_loops.push_back(scope_now(t));
  t.counters.push_back(t.sizes[name]);
  return Dim(var);
}

Operand carry(TracedGraph& t, const Dim& counter, int64_t index, const Operand& value) {
  Operand result(t.add(Carry{index}, {value_of(t, value), declaration(t, counter)}));
  result.weak = value.weak;
  return result;
}

namespace {

// Whether a value is computed from one for which `found` holds. Only values from `first` on are
// searched. A value also depends on the values of its sizes.
template <class Found>
bool depends_on(const TracedGraph& t, Value first, const Operand& x, Found found) {
  if (x.literal) return false;
  std::set<Value> seen{x.value};
  std::vector<Value> open{x.value};
  const auto add = [&](Value v) {
    if (v.id >= first.id && seen.insert(v).second) open.push_back(v);
  };
  while (!open.empty()) {
    const Value v = open.back();
    open.pop_back();
    const Node& node = t[v];
    if (v.id >= first.id && found(v, node)) return true;
    for (const Value input : node.inputs) add(input);
    for_each_dim(node, [&](const Dim& size) {
      for (const auto& term : size.terms()) add(t.sizes.at(term.var.name));
    });
  }
  return false;
}

}  // namespace

bool depends_on_counter(const TracedGraph& t, const Dim& counter, const Operand& x) {
  const Value declared = declaration(t, counter);
  return depends_on(t, declared, x, [&](Value v, const Node&) { return v == declared; });
}

bool depends_on_carried(const TracedGraph& t, const Dim& counter, const Operand& x) {
  const Value declared = declaration(t, counter);
  return depends_on(t, declared, x, [&](Value, const Node& node) {
    return node.as<Carry>() && node.inputs[1] == declared;
  });
}

bool depends_on_arguments(const TracedGraph& t, const Operand& x) {
  return depends_on(t, Value{0}, x, [](Value, const Node& node) {
    return node.as<Placeholder>() || node.as<Host_Callback>() || node.as<Custom>();
  });
}

namespace {

// The 0-d value of a node, computed from those of its inputs. Nothing if it depends on anything
// else.
std::optional<Scalar> evaluated(const Node& node, std::span<const Scalar> inputs) {
  if (max_elements(node.shape()) != 1) return std::nullopt;
  if (const auto* constant = node.as<Const_Scalar>()) return constant->value;
  if (const auto* cast = node.as<Cast>()) return inputs[0].cast(cast->target);
  if (const auto* unary = node.as<Unary>()) return evaluate(unary->op, inputs);
  if (const auto* binop = node.as<Binop>()) return evaluate(binop->op, inputs);
  if (const auto* ternary = node.as<Ternary>()) return evaluate(ternary->op, inputs);
  if (node.as<Reshape>() || node.as<Expand>()) return inputs[0];
  return std::nullopt;
}

}  // namespace

std::optional<std::vector<bool>> holds_at(const TracedGraph& t, const Dim& counter,
                                          const Operand& x, int64_t start, int64_t count,
                                          int64_t step) {
  if (x.literal) return std::nullopt;
  const Value declared = declaration(t, counter);
  std::set<Value> needed;  // in the order of the graph
  search(t, {x.value}, [&](Value v) {
    needed.insert(v);
    return v != declared;
  });
  std::vector<bool> result;
  std::map<Value, Scalar> values;
  for (int64_t k = 0; k < std::max<int64_t>(count, 1); ++k) {
    for (const Value v : needed) {
      std::vector<Scalar> inputs;
      if (v != declared)
        for (const Value input : t[v].inputs) inputs.push_back(values.at(input));
      const std::optional<Scalar> value =
          v == declared ? Scalar::of(DType::Int64, start + k * step) : evaluated(t[v], inputs);
      if (!value) return std::nullopt;
      values[v] = *value;
    }
    if (k < count) result.push_back(values.at(x.value).as_bool());
  }
  return result;
}

double largest_operation(const TracedGraph& t, const Dim& counter) {
  const Graph& graph = t.graph();
  double largest = 0;
  for (uint32_t id = declaration(t, counter).id; id < graph.size(); ++id) {
    const Node& node = graph.nodes[id];
    const auto* contract = node.as<Contract>();
    if (!contract && !node.as<Unary>() && !node.as<Binop>() && !node.as<Ternary>()) continue;
    double count = static_cast<double>(max_elements(node.shape()));
    if (contract)
      for (const auto& pair : contract->contract)
        count *= static_cast<double>(graph[node.inputs[0]].shape()[pair.first].bound());
    largest = std::max(largest, count);
  }
  return largest;
}

namespace {

// Removes the checks that have been added since.
void drop_checks(TracedGraph& t, const CheckScope& since) {
  t.checks.resize(since.num_checks);
  t.open_conditions.resize(since.num_conditions);
  t.must_fit.resize(since.num_must_fit);
}

}  // namespace

void give_up_loop(TracedGraph& t) {
  drop_checks(t, t.open_loops.back());
  CheckScope scope = close(t.open_loops);
  t.counters.pop_back();
  t.checked = std::move(scope.checked);
}

Dim bind_size(TracedGraph& t, const Operand& value, int64_t low, int64_t high) {
  RUNE_CHECK(!t.counters.empty(), "a size that data decide is in no loop");
  const Value number = t.cast(value_of(t, value), DType::Int64);
  const Value counter = t.counters.back();
  for (const Value known : t.bound) {
    const Node& node = t[known];
    const SymVar& var = node.as<Loop_Size>()->var;
    if (node.inputs[1] == counter && var.min_val == low && var.max_val == high &&
        same(t, node.inputs[0], number))
      return Dim(var);
  }
  if (low == high) return low;
  const SymVar var{new_name(t), low, high};
  t.bound.push_back(t.add(Loop_Size{var}, {number, counter}));
  t.sizes[var.name] = t.bound.back();
  return Dim(var);
}

Dim bind_number(TracedGraph& t, const Operand& value, int64_t low, int64_t high) {
  const Operand least = Literal::of(low), most = Literal::of(high);
  return bind_size(t, clip(t, value_of(t, value), least, most), low, high);
}

Dim bind_bound(TracedGraph& t, const Operand& value) {
  constexpr int64_t kMost = int64_t{1} << 40;
  const Value given = value_of(t, value);
  const std::optional<IntegerRange> range = integer_range(t, given);
  if (range && range->low >= -kMost && range->high <= kMost)
    return bind_size(t, value, static_cast<int64_t>(range->low), static_cast<int64_t>(range->high));
  if (t.dtype(given) == DType::Uint64)
    user_error(ErrorKind::Unsupported, "range: cannot trace a bound of uint64");
  const Value number = t.cast(given, DType::Int64);
  const Value kept =
      clip(t, number, Operand(Literal::of(-kMost)), Operand(Literal::of(kMost))).value;
  assume(t, elementwise(t, AluOp::Cmpeq, {kept, number}));
  return bind_size(t, kept, -kMost, kMost);
}

void assume(TracedGraph& t, const Operand& holds) {
  const Value fails = t.alu(AluOp::Not, {holds.value});
  t.checks.push_back({t.cast(fails, DType::Uint64), std::nullopt, 0, std::nullopt});
}

void raise_if(TracedGraph& t, const Operand& raises, int64_t number) {
  t.checks.push_back({t.cast(raises.value, DType::Uint64), std::nullopt, 0, number});
}

void assume_nonzero(TracedGraph& t, const Operand& x) {
  const Value zero = t.constant(Scalar::zero(t.dtype(x.value)));
  assume(t, {t.alu(AluOp::Cmpne, {x.value, zero})});
  t.nonzero.insert(x.value);
}

Operand assume_small(TracedGraph& t, const Operand& x) {
  constexpr int64_t kMost = int64_t{1} << 31;
  const Value given = value_of(t, x);
  const Value kept =
      clip(t, given, Operand(Literal::of(-kMost)), Operand(Literal::of(kMost))).value;
  assume(t, elementwise(t, AluOp::Cmpeq, {kept, given}));
  t.ranges.try_emplace(kept, -kMost, kMost);  // holds even if `given` has wrapped
  return {kept, Kind::Int};
}

void begin_condition(TracedGraph& t) {
  t.open_conditions.push_back(scope_now(t));
}

void end_condition(TracedGraph& t, const Operand& holds) {
  CheckScope scope = close(t.open_conditions);
  t.checked = std::move(scope.checked);
  const Value none = t.constant(Scalar::zero(DType::Uint64));
  for (size_t i = scope.num_checks; i < t.checks.size(); ++i)
    t.checks[i].value = t.alu(AluOp::Where, {holds.value, t.checks[i].value, none});
}

namespace {

// Whether the loop with this counter has a loop with a condition that depends on what it carries.
// After a failed check, what it carries may be such that the inner loop would not end.
bool may_not_end(const TracedGraph& t, Value counter) {
  bool found = false;
  for (uint32_t id = counter.id; id < t.size() && !found; ++id) {
    const auto* inner = t[Value{id}].as<End_Loop>();
    if (!inner || !inner->goes_on) continue;
    search(t, {Value{id}}, [&](Value v) {
      if (found || v.id < counter.id) return false;
      found = t[v].as<Carry>() && t[v].inputs[1] == counter;
      return !found;
    });
  }
  return found;
}

// Whether a value in the loop with this counter is certainly the same in all iterations.
bool is_invariant(const TracedGraph& t, Value value, Value counter) {
  bool varies = false;
  search(t, {value}, [&](Value v) {
    if (varies || v.id < counter.id) return false;
    const Node& node = t[v];
    varies = node.as<Loop_Counter>() || node.as<Carry>() || node.as<Loop_Size>() ||
             node.as<Loop_Result>() || node.as<End_Loop>();
    for_each_dim(node, [&](const Dim& size) { varies |= !size.is_constant(); });
    return !varies;
  });
  return !varies;
}

}  // namespace

Operands end_loop(TracedGraph& t, const Dim& counter, const Dim& start, const Dim& stop,
                  int64_t step, const Operands& values, const Operands& initial,
                  std::optional<int64_t> goes_on, bool keeps_checks) {
  if (!keeps_checks) drop_checks(t, t.open_loops.back());
  CheckScope scope = close(t.open_loops);
  t.counters.pop_back();
  t.checked = std::move(scope.checked);
  std::vector<Value> carried, before;
  for (const Operand& x : values) carried.push_back(value_of(t, x));
  for (const Operand& x : initial) before.push_back(value_of(t, x));
  // The loop carries, for each check, the result of the first iteration in which the check failed.
  // If the first iteration certainly runs, an assumption that is the same in all iterations is
  // checked only once.
  const Value none = t.constant(Scalar::zero(DType::Uint64));
  const Dim span = step > 0 ? stop - start : start - stop;
  const Value declared = declaration(t, counter);
  const auto first_check = t.checks.begin() + static_cast<int64_t>(scope.num_checks);
  const auto varying = std::stable_partition(first_check, t.checks.end(), [&](const RunCheck& c) {
    return !c.axis && span.least() > 0 && is_invariant(t, c.value, declared);
  });
  if (!goes_on && varying != t.checks.end() && may_not_end(t, declared)) {
    goes_on = std::ssize(carried);
    carried.push_back(t.constant(Scalar::of(DType::Bool, true)));
    before.push_back(carried.back());
  }
  // A loop with a condition does not begin if a check has failed: it might not end.
  if (goes_on)
    for (auto check = t.checks.begin(); check != varying; ++check) {
      Value& begins = before[*goes_on];
      if (check >= first_check) check->value = t.alu(AluOp::Where, {begins, check->value, none});
      begins = t.alu(AluOp::And, {begins, t.alu(AluOp::Cmpeq, {check->value, none})});
    }
  const size_t num_results = carried.size();
  scope.num_checks = static_cast<size_t>(varying - t.checks.begin());
  for (size_t i = scope.num_checks; i < t.checks.size(); ++i) {
    const Value so_far = t.add(Carry{std::ssize(carried)}, {none, declared});
    const Value found = t.alu(AluOp::Cmpne, {so_far, none});
    carried.push_back(t.alu(AluOp::Where, {found, so_far, t.checks[i].value}));
    before.push_back(none);
  }
  // A loop with a condition also ends when a check has failed.
  if (goes_on)
    for (size_t i = num_results; i < carried.size(); ++i)
      carried[*goes_on] =
          t.alu(AluOp::And, {carried[*goes_on], t.alu(AluOp::Cmpeq, {carried[i], none})});
  std::vector<Value> operands{declared};
  operands.insert(operands.end(), carried.begin(), carried.end());
  operands.insert(operands.end(), before.begin(), before.end());
  const Value end = t.add(End_Loop{start, stop, step, goes_on}, operands);
  const auto result = [&](size_t k) {
    return t.add(Loop_Result{static_cast<int64_t>(k)}, {end, carried[k]});
  };
  Operands results;
  for (size_t i = 0; i < values.size(); ++i) {
    results.push_back(result(i));
    results.back().weak = values[i].weak;
  }
  for (size_t i = scope.num_checks; i < t.checks.size(); ++i)
    t.checks[i].value = result(num_results + i - scope.num_checks);
  return results;
}

}  // namespace rune::graph::numpy
