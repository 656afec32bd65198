// Finds loops whose iterations may run side by side.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "driver/loop_plan.h"

namespace rune::driver {

// Sets LoopPlan::is_parallel if the plan's iterations may run side by side: the last statement is a
// loop, and no iteration accesses elements of the carried values that another iteration stores.
// There is an exception for an output that begins as a copy of an input: iterations may read
// elements to which only later iterations store, and then read them from the input. If the
// iterations may run side by side, or if the copies are large, such copies of inputs are removed
// from the statements and become the plan's copies.
void find_parallel_iterations(LoopPlan& plan);

// Replaces the cells that statements read by the cells in `others`.
void read_from(std::vector<Statement>& statements, const std::map<size_t, size_t>& others);

// The cells that statements read, and those to which they store.
struct CellUse {
  std::set<size_t> read, stored;
};
CellUse cells_of(std::span<const Statement> statements);

// The difference of a loop's bounds, in the direction in which it counts.
Dim span_of(const LoopRange& range);

// The nested loops, beginning with this one, whose iterations may each run in a thread of their
// own: the largest number of iterations of each loop. Empty if iterations of the loop may not run
// side by side. `depth` is the number of loops around it.
std::vector<int64_t> side_by_side(const LoopPlan& plan, const Repeat& repeat, size_t depth);

}  // namespace rune::driver
