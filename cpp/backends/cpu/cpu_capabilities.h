// What the machine that this process runs on can do, for the stages above the backend.
#pragma once

#include "types/capabilities.h"

namespace rune::runtime {

// Read once from the processor and the operating system. num_cores counts the cores that this
// process may run on. Bandwidth and peak are rough: per machine, from the number of cores.
const Capabilities& cpu_capabilities();

// Marks the operations that the LLVM renderer computes itself; the others go through `decompose`.
void set_cpu_native_ops(Capabilities& caps);

}  // namespace rune::runtime
