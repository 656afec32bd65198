// Lowers the computations of loop bodies between two writes to kernels.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "driver/loop_plan.h"
#include "driver/pipeline.h"

namespace rune::driver {

struct LoweredCompute {
  schedule::Schedule schedule;
  std::vector<lower::Kernel> kernels;  // by kernel of the schedule
  std::optional<Store> store;          // for an output that the kernels cannot store in its place
  size_t first_kernel = 0;             // the position of the kernels in LoopSteps::kernels, if any
};

// Lowers a Compute of the plan for a device with these capabilities. The kernels' memories are the
// cells that the Compute names. If the output is a part of a cell and no single kernel can store it
// there, it becomes a cell of its own, which is added to the plan, and `store` copies it.
LoweredCompute lower_compute(Compute& compute, LoopPlan& plan, const Capabilities& caps,
                             const std::string& device);

}  // namespace rune::driver
