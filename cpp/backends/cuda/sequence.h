// Kernels and copies that run together, as a CUDA graph.
#pragma once

#include <memory>
#include <string>
#include <vector>

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
  bool begins_early = false;  // before earlier kernels have ended, for which it waits itself
};

// Launches the kernel.
void launch_kernel(const LoadedKernel& kernel, const runtime::LaunchArguments& arguments,
                   Context& context);

struct GraphLoop;

// A step of a graph: it launches a kernel, runs a loop, or copies bytes.
struct GraphStep {
  const LoadedKernel* kernel = nullptr;  // of `program`
  std::shared_ptr<const runtime::Program> program;
  size_t bytes = 0;
  std::shared_ptr<const GraphLoop> loop = nullptr;
};

// A loop (see runtime::SequenceLoop).
struct GraphLoop {
  struct Turn {
    std::vector<GraphStep> body, end;
  };
  std::vector<Turn> turns;
};

// CUDA C++ of the kernels that decide whether a loop continues, and with which turn.
extern const char* const kLoopKernels;
struct LoopKernels {
  static constexpr const char* kNames[] = {"rune_enter_loop", "rune_advance_loop",
                                           "rune_leave_loop"};
  LoadedKernel enter, advance, leave;
};

// Joins the steps to a graph, whose parameters may change from run to run. A long graph is made
// only when it runs a second time, because making it takes longer than running its steps one by
// one. `kernels` is null if no step is a loop.
std::unique_ptr<runtime::Sequence> make_sequence(std::vector<GraphStep> steps,
                                                 std::shared_ptr<const LoopKernels> kernels,
                                                 Context& context);

}  // namespace rune::cuda
