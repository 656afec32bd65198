// Combines the accumulators of a reduction into one result.
#pragma once

#include <vector>

#include "lower/passes/kernel_context.h"

namespace rune::lower {

// The places of a reduction's partial results.
struct Partials {
  std::vector<Var> copies;  // accumulators of one thread
  bool in_lanes = false;    // each accumulator is a vector of partial results
  bool in_threads = false;  // each thread of the workgroup has partial results; all get the result
};

// Emits trees that combine the copies, then the lanes, then the threads.
Var combine(KernelContext& context, const Partials& partials, ReduceOp op);

}  // namespace rune::lower
