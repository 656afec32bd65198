// Loops in one kernel, their bodies' kernels one after the other inside of the loops.
#pragma once

#include <string>
#include <vector>

#include "driver/loop_plan.h"
#include "lower/instr.h"
#include "schedule/schedule.h"

namespace rune::driver {

// A kernel that runs the plan's statements. Its globals are the cells that are inputs, in order,
// and outputs; its variables are these. It computes bodies for one core, or for one thread of a
// grid. It has so many workgroups if iterations of the outermost loop may run side by side.
lower::Kernel lower_loop_kernel(LoopPlan plan, const Capabilities& caps, const std::string& device,
                                std::vector<SymVar> variables, int64_t workgroups);

// A kernel of which each thread runs an iteration of loops that lie one in the other and are the
// plan's only statement. `counts` has the most iterations of each of these loops. Cells that are
// neither inputs nor outputs are each thread's own.
struct ThreadsKernel {
  lower::Kernel kernel;
  int64_t threads = 1;    // that run an iteration
  double operations = 0;  // of all threads
};
ThreadsKernel lower_threads_kernel(LoopPlan plan, const std::vector<int64_t>& counts,
                                   const Capabilities& caps, const std::string& device,
                                   std::vector<SymVar> variables);

// How often a loop's body runs, as far as is known.
double mean_trips(const LoopRange& range);
// Operations on elements that a thread does, if it does all that an item does.
double thread_operations(const schedule::ItemAnalysis& item);

}  // namespace rune::driver
