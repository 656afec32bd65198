// Lowers loops to one kernel, which has the kernels of the bodies inside of the loops, in order.
#pragma once

#include <string>
#include <vector>

#include "driver/loop_plan.h"
#include "lower/instr.h"
#include "schedule/schedule.h"

namespace rune::driver {

// A kernel that runs the plan's statements. Its globals are the cells that are inputs, in order,
// followed by those that are outputs. Its variables are `variables`. It computes bodies for one
// core, or for one thread of a grid. If iterations of the outermost loop may run side by side, it
// has `workgroups` workgroups.
lower::Kernel lower_loop_kernel(LoopPlan plan, const Capabilities& caps, const std::string& device,
                                std::vector<SymVar> variables, int64_t workgroups);

// A kernel for nested loops that are the plan's only statement. Each thread runs one iteration.
// `counts` has the largest number of iterations of each loop. Each thread has its own cells that
// are neither inputs nor outputs.
struct ThreadsKernel {
  lower::Kernel kernel;
  int64_t threads = 1;    // the number of threads that run an iteration
  double operations = 0;  // of all threads
};
ThreadsKernel lower_threads_kernel(LoopPlan plan, const std::vector<int64_t>& counts,
                                   const Capabilities& caps, const std::string& device,
                                   std::vector<SymVar> variables);

// The expected number of times that a loop's body runs.
double mean_trips(const LoopRange& range);
// The operations on elements of one thread that does all the work of an item.
double thread_operations(const schedule::ItemAnalysis& item);

}  // namespace rune::driver
