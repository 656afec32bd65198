#include "graph/numpy/loops.h"

namespace rune::graph::numpy {

namespace {

// The Loop_Counter that declares a counter.
Value declaration(const TracedGraph& t, const Dim& counter) {
  RUNE_CHECK(counter.terms().size() == 1, "not the counter of a loop: ", counter);
  return t.sizes.at(counter.terms()[0].var.name);
}

}  // namespace

Dim begin_loop(TracedGraph& t, int64_t low, int64_t high) {
  std::string name;
  for (size_t i = t.size(); name.empty() || t.sizes.contains(name); ++i) name = concat("i", i);
  const SymVar var{name, low, high};
  t.sizes[name] = t.add(Loop_Counter{var}, {});
  ++t.open_loops;
  return Dim(var);
}

Operand carry(TracedGraph& t, const Dim& counter, int64_t index, const Operand& value) {
  Operand result(t.add(Carry{index}, {value_of(t, value), declaration(t, counter)}));
  result.weak = value.weak;
  return result;
}

Operands end_loop(TracedGraph& t, const Dim& counter, const Dim& start, const Dim& stop,
                  int64_t step, const Operands& values, const Operands& initial) {
  std::vector<Value> operands{declaration(t, counter)};
  for (const Operand& x : values) operands.push_back(value_of(t, x));
  for (const Operand& x : initial) operands.push_back(value_of(t, x));
  const Value end = t.add(End_Loop{start, stop, step}, operands);
  --t.open_loops;
  Operands results;
  for (size_t i = 0; i < values.size(); ++i) {
    results.push_back(t.add(Loop_Result{static_cast<int64_t>(i)}, {end, operands[1 + i]}));
    results.back().weak = values[i].weak;
  }
  return results;
}

}  // namespace rune::graph::numpy
