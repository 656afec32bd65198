// The whole path: from a graph to source text and to a program that runs.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "driver/targets.h"
#include "graph/node.h"
#include "lower/instr.h"
#include "runtime/executable.h"
#include "schedule/schedule.h"

namespace rune::driver {

// A program on its way: each stage's result, none of it run.
struct Lowered {
  const Target* target = nullptr;
  graph::Graph graph;                  // as it was traced
  schedule::Schedule schedule;         // holds the graph after its passes
  std::vector<lower::Kernel> kernels;  // by schedule item of kind Kernel, in order
};

// Runs the pipeline up to the Lowered IR. Throws UserError for what the target cannot do (DType for
// a dtype that it lacks).
Lowered lower(const graph::Graph& graph, const std::string& device);

// The kernels' source for a target. For another target than the one lowered for, the program is
// lowered again for that target.
std::string source(const Lowered& lowered, const std::string& target);

// kernels, flops, bytes_read, bytes_written, peak_bytes, estimated_ns, transfers, barriers.
std::map<std::string, double> cost_analysis(const Lowered& lowered);

// Compiles for the device (opened at first use; throws UserError(Runtime) if this machine has
// none).
std::shared_ptr<const runtime::Executable> compile(const Lowered& lowered,
                                                   const std::string& device);

// A program of one kernel, after the passes on the Lowered IR: its inputs are the kernel's memories,
// its outputs what the writable ones, which begin as their inputs, hold afterwards.
std::shared_ptr<const runtime::Executable> compile_kernel(const lower::Kernel& kernel,
                                                          const std::string& device);

}  // namespace rune::driver
