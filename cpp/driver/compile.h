// The whole path: graph, passes, Scheduled IR, Lowered IR, source text, program.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "graph/node.h"
#include "lower/instr.h"
#include "runtime/executable.h"
#include "schedule/schedule.h"

namespace rune::driver {

// A place that programs can be lowered for, whether or not this machine has it.
struct Target {
  std::string name;  // "cpu", "metal", "interpreter", "null"
  Capabilities capabilities;
};

// Throws UserError(Value) that lists the known targets. "cpu:1" is the target "cpu".
const Target& find_target(const std::string& device);
std::vector<std::string> target_names();

// A program on its way: each stage's result, none of it run.
struct Lowered {
  Target target;
  graph::Graph graph;              // after the graph passes
  schedule::Schedule schedule;
  std::vector<lower::Kernel> kernels;  // by schedule item of kind Kernel, in order
};

// Runs the pipeline up to the Lowered IR. Throws UserError for what the target cannot do (DType for a
// dtype that it lacks).
Lowered lower(const graph::Graph& graph, const std::string& device);

// The kernels' source for a target. For another target than the one lowered for, the schedule is made
// again for that target.
std::string source(const Lowered& lowered, const std::string& target);

// kernels, flops, bytes_read, bytes_written, peak_bytes, estimated_ns, transfers, barriers.
std::map<std::string, double> cost_analysis(const Lowered& lowered);

// Compiles for the device (opened at first use; throws UserError(Runtime) if this machine has none).
std::shared_ptr<const runtime::Executable> compile(const Lowered& lowered, const std::string& device);

}  // namespace rune::driver
