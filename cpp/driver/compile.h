// The whole path: from a graph to source text and to a program that runs.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "driver/host_call.h"
#include "driver/pipeline.h"
#include "driver/targets.h"
#include "graph/node.h"
#include "lower/instr.h"
#include "runtime/executable.h"
#include "schedule/schedule.h"

namespace rune::driver {

// A program on its way: each stage's result, none of it run.
struct Lowered {
  std::string name;  // of the user's function, for profiles
  const Target* target = nullptr;
  Capabilities capabilities;    // that it was lowered for
  graph::Graph graph;           // as it was traced
  schedule::Schedule schedule;  // holds the graph after its passes
  // By kernel of the schedule, then those of its Loop_Nests; each becomes one program.
  std::vector<lower::Kernel> kernels;
  std::vector<LoweredLoops> loops;  // by Loop_Nest among the schedule's items
  // Of the Loop_Nest that is the item of this number.
  const LoweredLoops& loops_of(size_t item) const;
};

// Runs the pipeline up to the Lowered IR. Throws UserError for what the target cannot do (DType for
// a dtype that it lacks).
Lowered lower(const graph::Graph& graph, const std::string& device);

// The kernels' source for a target. For another target than the one lowered for, the program is
// lowered again for that target.
std::string source(const Lowered& lowered, const std::string& target);

// The name and the source for a target of each program, as `source` has them together.
std::vector<std::pair<std::string, std::string>> kernel_texts(const Lowered& lowered,
                                                              const std::string& target);

// By launch, in order: its kernel, with its arguments.
std::vector<lower::Kernel> launched_kernels(const Lowered& lowered);

// kernels (launches), programs, flops, bytes_read, bytes_written, peak_bytes, estimated_ns,
// transfers, barriers.
std::map<std::string, double> cost_analysis(const Lowered& lowered);

// Compiles for the device (opened at first use; throws UserError(Runtime) if this machine has
// none). The program is lowered again where the device can do other things than its target in
// general, or runs a kernel with fewer threads in a workgroup only. `functions` are what the
// graph's Host_Callback nodes call, by number; throws UserError(Value) if one is missing.
std::shared_ptr<const runtime::Executable> compile(const Lowered& lowered,
                                                   const std::string& device,
                                                   const std::vector<HostFunction>& functions = {});

// A program of one kernel, after the passes on the Lowered IR: its inputs are the kernel's
// memories, its outputs what the writable ones, which begin as their inputs, hold afterwards.
std::shared_ptr<const runtime::Executable> compile_kernel(const lower::Kernel& kernel,
                                                          const std::string& device);

}  // namespace rune::driver
