// Counters of loops that end depending on data. Kernels read them from memory, so that a device can
// begin an iteration without the host.
#pragma once

#include "lower/instr.h"

namespace rune::driver {

// The kernel with one more argument: an int64 in memory, which it reads in place of the variable
// `counter`.
lower::Kernel with_counter_in_memory(const lower::Kernel& kernel, const SymVar& counter);

// A kernel whose argument is the memory of an int64, to which it adds `step`.
lower::Kernel counting_kernel(std::string name, int64_t step);

}  // namespace rune::driver
