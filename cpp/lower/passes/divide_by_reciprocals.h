// Replaces divisions in loops by products with reciprocals.
#pragma once

#include "lower/instr.h"
#include "types/capabilities.h"

namespace rune::lower {

// Computes x / c, for vectors x in a loop and a divisor c that is known before the loop, by the
// reciprocal of c, which is computed in front of the loop. The result is the correctly rounded
// quotient, as that of the division. Vectors with a lane for which that may not hold (x or c is
// huge, tiny, infinite or NaN, or c is not positive) are divided.
//
// Changes nothing on a grid and for registers of fewer than 256 bits. Keeps the divisions of a loop
// that divides so few vectors by c that computing the reciprocal takes longer than it saves. The
// device's divisions_per_ns decides how many vectors are enough.
Kernel divide_by_reciprocals(const Kernel& kernel, const Capabilities& caps);

}  // namespace rune::lower
