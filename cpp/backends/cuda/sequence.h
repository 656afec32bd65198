// Kernels that are launched together, as a CUDA graph.
#pragma once

#include <memory>
#include <span>

#include "backends/cuda/context.h"
#include "runtime/device.h"

namespace rune::cuda {

// A kernel that has been loaded, and how it is launched.
struct LoadedKernel {
  std::shared_ptr<const std::string> label;  // its name, and the user's line
  std::shared_ptr<const void> module;
  FunctionHandle function = nullptr;
  unsigned grid = 1, local = 1;
  size_t num_buffers = 0;
};

// The launches as a graph, whose parameters change from run to run.
std::unique_ptr<runtime::Sequence> make_sequence(std::vector<LoadedKernel> kernels,
                                                 Context& context);

}  // namespace rune::cuda
