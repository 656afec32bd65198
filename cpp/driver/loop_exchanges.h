// Finds memory that a loop's iterations can exchange instead of copying it.
#pragma once

#include <cstddef>
#include <vector>

#include "driver/loop_plan.h"

namespace rune::driver {

// Cells of equal types and sizes that exchange their memory after each iteration: each cell gets
// the memory of the next one, and the last cell, whose values are no longer used, that of the
// first.
using Exchange = std::vector<size_t>;

struct Exchanges {
  std::vector<Exchange> cells;     // of two or three cells
  std::vector<size_t> statements;  // the statements of an iteration that remain, without the copies
  size_t num_turns = 1;  // after this number of iterations all cells have their own memory again
};

// Finds the copies at the end of an iteration that an exchange can replace: the copy's source is
// computed anew in each iteration and used nowhere else. The loop is a statement of the plan
// itself.
Exchanges find_exchanges(const LoopPlan& plan, const Repeat& repeat);

}  // namespace rune::driver
