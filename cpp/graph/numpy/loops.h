// Loops of a function that is traced: their bodies are traced once.
#pragma once

#include "graph/numpy/operands.h"

namespace rune::graph::numpy {

// The counter of a new loop, whose values in all iterations are from `low` to `high`, which differ.
// Until the loop ends, writes to parts of arrays are Updates.
Dim begin_loop(TracedGraph& t, int64_t low, int64_t high);
// What the loop carries as number `index`, at the start of an iteration. `value` is what it is
// before the first iteration; a Python scalar stays one.
Operand carry(TracedGraph& t, const Dim& counter, int64_t index, const Operand& value);
// Whether a value may differ from iteration to iteration of an open loop.
bool depends_on_counter(const TracedGraph& t, const Dim& counter, const Operand& x);
// Whether a value may depend on what the loop carries, and so on the iteration before.
bool depends_on_carried(const TracedGraph& t, const Dim& counter, const Operand& x);
// Whether a value is computed from an argument of the program, or from what the host computes.
bool depends_on_arguments(const TracedGraph& t, const Operand& x);
// How many operations the largest node takes that has been made since the loop began.
double largest_operation(const TracedGraph& t, const Dim& counter);
// A size in the body of the innermost loop: a number that is computed there, from `low` to `high`.
// Equal numbers of one loop are one size.
Dim bind_size(TracedGraph& t, const Operand& value, int64_t low, int64_t high);
// The same for a number that is known to lie within these bounds.
Dim bind_number(TracedGraph& t, const Operand& value, int64_t low, int64_t high);
// The same for a bound of a range, which may be any integer. Beyond 2^40 the program must not be
// used.
Dim bind_bound(TracedGraph& t, const Operand& value);
// The program must not be used where this 0-d bool is false.
void assume(TracedGraph& t, const Operand& holds);
// Where this 0-d bool is true, the traced function raises an exception: Python runs the call. The
// check has the number.
void raise_if(TracedGraph& t, const Operand& raises, int64_t number);
// States that a Python number is not 0, which the program checks.
void assume_nonzero(TracedGraph& t, const Operand& x);
// A Python integer, which is assumed to be at most 2^31 in magnitude.
Operand assume_small(TracedGraph& t, const Operand& x);
// Ends the innermost loop without a result: nobody uses its values.
void give_up_loop(TracedGraph& t);
// What is traced until the condition ends is used only where it holds: so are checks of indices.
void begin_condition(TracedGraph& t);
void end_condition(TracedGraph& t, const Operand& holds);
// Ends the innermost loop. `values` and `initial` are what it carries at the end of an iteration
// and before the first one; the results what they are after the last one. Throws UserError(Value)
// if the shape of a value changes, UserError(Type) for its dtype. If `goes_on` is given, value
// number `goes_on` is a 0-d bool, and an iteration runs only if it is true; else the loop ends.
// What is checked in the body stays so if `keeps_checks`.
Operands end_loop(TracedGraph& t, const Dim& counter, const Dim& start, const Dim& stop,
                  int64_t step, const Operands& values, const Operands& initial,
                  std::optional<int64_t> goes_on, bool keeps_checks = true);

}  // namespace rune::graph::numpy
