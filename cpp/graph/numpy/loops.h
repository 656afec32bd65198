// Builds the loops of a traced function. The body of a loop is traced once.
#pragma once

#include <optional>
#include <vector>

#include "graph/numpy/operands.h"

namespace rune::graph::numpy {

// Begins a loop and returns its counter, whose values are from `low` to `high`. These must differ.
// Until the loop ends, writes to parts of arrays are Updates.
Dim begin_loop(TracedGraph& t, int64_t low, int64_t high);
// The carried value number `index` at the start of an iteration. `value` is its value before the
// first iteration. A Python scalar stays a Python scalar.
Operand carry(TracedGraph& t, const Dim& counter, int64_t index, const Operand& value);
// Whether a value may differ from iteration to iteration of an open loop.
bool depends_on_counter(const TracedGraph& t, const Dim& counter, const Operand& x);
// Whether a value may depend on a carried value, and so on the iteration before.
bool depends_on_carried(const TracedGraph& t, const Dim& counter, const Operand& x);
// Whether a value depends on an argument of the program or on a result of a host call.
bool depends_on_arguments(const TracedGraph& t, const Operand& x);
// For each of `count` iterations, in which the counter is start, start + step and so on, whether a
// 0-d bool holds. Nothing if it depends on anything else than this counter.
std::optional<std::vector<bool>> holds_at(const TracedGraph& t, const Dim& counter,
                                          const Operand& x, int64_t start, int64_t count,
                                          int64_t step);
// The number of operations of the largest node that has been made since the loop began.
double largest_operation(const TracedGraph& t, const Dim& counter);
// Makes a number that is computed in the body of the innermost loop a size, from `low` to `high`.
// Equal numbers of one loop give the same size.
Dim bind_size(TracedGraph& t, const Operand& value, int64_t low, int64_t high);
// The same for a number that is known to lie within these bounds.
Dim bind_number(TracedGraph& t, const Operand& value, int64_t low, int64_t high);
// The same for a bound of a range, which may be any integer. The program must not be used if the
// bound is beyond 2^40.
Dim bind_bound(TracedGraph& t, const Operand& value);
// Adds a check: the program must not be used if this 0-d bool is false.
void assume(TracedGraph& t, const Operand& holds);
// Adds check number `number`: if this 0-d bool is true, the traced function raises an exception,
// and Python runs the call.
void raise_if(TracedGraph& t, const Operand& raises, int64_t number);
// Adds a check that a Python number is not 0.
void assume_nonzero(TracedGraph& t, const Operand& x);
// Adds a check that a Python integer is at most 2^31 in magnitude, and returns it.
Operand assume_small(TracedGraph& t, const Operand& x);
// Ends the innermost loop without a result. Its values must not be used.
void give_up_loop(TracedGraph& t);
// Values that are traced between these two calls are used only if the condition holds. Checks of
// indices between them apply only then.
void begin_condition(TracedGraph& t);
void end_condition(TracedGraph& t, const Operand& holds);
// Ends the innermost loop. `values` are the carried values at the end of an iteration, and
// `initial` those before the first one. Returns those after the last one. If `goes_on` is given,
// value number `goes_on` is a 0-d bool, and the loop ends when it is false. With `keeps_checks`,
// the checks of the body stay. Throws UserError(Value) if the shape of a value changes,
// UserError(Type) if its dtype does.
Operands end_loop(TracedGraph& t, const Dim& counter, const Dim& start, const Dim& stop,
                  int64_t step, const Operands& values, const Operands& initial,
                  std::optional<int64_t> goes_on, bool keeps_checks = true);

}  // namespace rune::graph::numpy
