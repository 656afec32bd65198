// The kernels of what loops compute between their writes.
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
  std::optional<Store> store;          // of what the kernels could not store in its place
  size_t first_kernel = 0;             // of LoopSteps::kernels, if they are there
};

// Lowers a Compute of the plan for a device with these capabilities; its memories are the cells
// that it names. If no single kernel can store the part of a cell, the Compute's output becomes a
// cell of its own, which the plan gets, and `store` says where it goes.
LoweredCompute lower_compute(Compute& compute, LoopPlan& plan, const Capabilities& caps,
                             const std::string& device);

}  // namespace rune::driver
