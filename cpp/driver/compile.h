// The whole path from a graph to source text, and to a program that can run.
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

// A program that has been lowered: the result of each stage. Nothing has run.
struct Lowered {
  std::string name;  // of the user's function, for profiles
  const Target* target = nullptr;
  Capabilities capabilities;    // the capabilities for which it was lowered
  graph::Graph graph;           // the traced graph, before any pass
  schedule::Schedule schedule;  // holds the graph after its passes
  // The kernels of the schedule, in order, followed by those of its Loop_Nests. Each becomes one
  // program.
  std::vector<lower::Kernel> kernels;
  std::vector<LoweredLoops> loops;  // by Loop_Nest among the schedule's items
  // The loops of the Loop_Nest that is item number `item`.
  const LoweredLoops& loops_of(size_t item) const;
};

// Runs the pipeline up to the Lowered IR. Throws UserError if the target cannot run the program
// (UserError(DType) for a dtype that it lacks).
Lowered lower(const graph::Graph& graph, const std::string& device);

// The kernels' source for a target. If it is not the target for which the program was lowered, the
// program is lowered again.
std::string source(const Lowered& lowered, const std::string& target);

// The name of each program, and its source for a target.
std::vector<std::pair<std::string, std::string>> kernel_texts(const Lowered& lowered,
                                                              const std::string& target);

// The kernel of each launch, in order, with the launch's arguments.
std::vector<lower::Kernel> launched_kernels(const Lowered& lowered);

// Figures by name: kernels (launches), programs, flops, bytes_read, bytes_written, peak_bytes,
// estimated_ns, transfers, barriers.
std::map<std::string, double> cost_analysis(const Lowered& lowered);

// Compiles for the device, which is opened at its first use. Lowers the program again if the
// device's capabilities are not those of its target, or if the device runs a kernel only with fewer
// threads in a workgroup. `functions` are the functions that the graph's Host_Callback nodes call,
// by number. Throws UserError(Runtime) if this machine has no such device, and UserError(Value) if
// a function is missing.
std::shared_ptr<const runtime::Executable> compile(const Lowered& lowered,
                                                   const std::string& device,
                                                   const std::vector<HostFunction>& functions = {});

// Compiles one kernel, after the passes on the Lowered IR. The program's inputs are the kernel's
// memories. Its outputs are the contents of the writable memories afterwards.
std::shared_ptr<const runtime::Executable> compile_kernel(const lower::Kernel& kernel,
                                                          const std::string& device);

}  // namespace rune::driver
