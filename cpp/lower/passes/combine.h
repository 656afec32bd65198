// One result from the accumulators of a reduction.
#pragma once

#include <vector>

#include "lower/passes/kernel_context.h"

namespace rune::lower {

// Where partial results of a reduction are.
struct Partials {
  std::vector<Var> copies;  // accumulators of one thread
  bool in_lanes = false;    // of each accumulator
  bool in_threads = false;  // of the workgroup; then all of them get the result
};

// Emits trees over the copies, the lanes and the threads.
Var combine(KernelContext& context, const Partials& partials, ReduceOp op);

}  // namespace rune::lower
