// One code for kernels that differ in constants only.
#pragma once

#include <vector>

#include "lower/instr.h"

namespace rune::lower {

// Makes the constants in which otherwise equal kernels differ arguments of the launch
// (Kernel::arguments), so that the kernels' bodies become equal; constants in which they agree
// stay. Afterwards kernels of equal launches whose bodies are equal share one. Integers are added
// to and compared, but not multiplied or divided by, as arguments: kernels that differ in strides
// stay apart. Linear in the number of instructions.
void parameterize_constants(std::vector<Kernel>& kernels);

}  // namespace rune::lower
