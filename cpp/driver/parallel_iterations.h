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
// loop, and no iteration touches elements of the carried values that another iteration stores. An
// output that begins as a copy of an input may also be read where only later iterations store to
// it, if the iterations then read the input. If they may, or if the copies are large, copies of
// inputs with which outputs begin leave the statements and become the plan's copies.
void find_parallel_iterations(LoopPlan& plan);

// Lets statements read other cells.
void read_from(std::vector<Statement>& statements, const std::map<size_t, size_t>& others);

// The cells that statements read, and those to which they store.
struct CellUse {
  std::set<size_t> read, stored;
};
CellUse cells_of(std::span<const Statement> statements);

// The difference of a loop's bounds, in the direction in which it counts.
Dim span_of(const LoopRange& range);

// Loops that lie one in the other, the first of which is this one, and of whose iterations threads
// may each run one: for each loop the most iterations that it has. None if iterations of the loop
// may not run side by side. `depth` is the number of loops around it.
std::vector<int64_t> side_by_side(const LoopPlan& plan, const Repeat& repeat, size_t depth);

}  // namespace rune::driver
