// Memory that a loop's iterations exchange instead of copying it.
#pragma once

#include <cstddef>
#include <vector>

#include "driver/loop_plan.h"

namespace rune::driver {

// After an iteration each cell but the last has the memory of the next one, and the last one, whose
// values are of no more use, that of the first. Cells of equal types and sizes.
using Exchange = std::vector<size_t>;

struct Exchanges {
  std::vector<Exchange> cells;     // of two or three cells
  std::vector<size_t> statements;  // of an iteration, by number: not the copies that are needless
  size_t num_turns = 1;            // after so many iterations all cells have their own memory again
};

// What the copies at the end of a loop's iteration do: where a cell is given what another one
// holds, and that other is computed anew in each iteration and is used nowhere else, they may
// exchange their memory. The loop is one of the plan's own.
Exchanges find_exchanges(const LoopPlan& plan, const Repeat& repeat);

}  // namespace rune::driver
