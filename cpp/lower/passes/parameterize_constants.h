// Makes kernels that differ only in constants share their code.
#pragma once

#include <vector>

#include "lower/instr.h"

namespace rune::lower {

// Turns the constants in which otherwise equal kernels differ into arguments of the launch
// (Kernel::arguments), so that their bodies become equal. Constants in which they agree stay.
// Kernels with equal launches and equal bodies share one body afterwards. An integer becomes an
// argument only if it is added or compared, not if it is a factor or divisor, so kernels that
// differ in strides keep separate bodies. Takes linear time.
void parameterize_constants(std::vector<Kernel>& kernels);

}  // namespace rune::lower
