// The whole compiler: a table of named passes, and a runner that prints, times, verifies and stops
// between them.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graph/node.h"
#include "lower/instr.h"
#include "lower/passes/launch.h"
#include "schedule/schedule.h"

namespace rune::driver {

// The IR that a program is in: a graph in one of its two dialects, a schedule, or lowered kernels.
// Passes take a program from one IR to the next.
enum class Stage : uint8_t { Source, Core, Schedule, Lowered };

struct LoopSteps;

// A Loop_Nest: a single kernel, or steps that launch kernels.
struct LoweredLoops {
  size_t first_kernel = 0, num_kernels = 1;  // of the program's
  std::shared_ptr<const LoopSteps> steps = nullptr;
};

// A program on its way through the passes. The fields of stages that it has not reached are empty.
struct State {
  const Capabilities* capabilities = nullptr;
  std::string device;  // where the program runs; empty: the target's first device
  Stage stage = Stage::Source;
  graph::Graph graph;
  bool is_divided = false;  // whether a pass has divided work of the graph
  schedule::Schedule schedule;
  // The kernels of the schedule, in order, followed by those of each Loop_Nest among its items.
  std::vector<lower::Kernel> kernels;
  std::vector<LoweredLoops> loops;  // by Loop_Nest
  // By number of an output that the kernels store as a part of an array: the place of the part.
  std::map<size_t, lower::Placement> placements;
};

// A pass reads the IR of stage `from` and leaves that of stage `to`.
struct Pass {
  const char* name;
  Stage from;
  Stage to;
  void (*run)(State&);
};

// All passes, in order.
std::span<const Pass> pipeline();
// Throws UserError(Value), which lists the names, if there is no such pass.
const Pass& find_pass(const std::string& name);

// Runs one pass. Prints the IR after it if RUNE_JIT_DUMP names it (or is `all`), and its time if
// RUNE_JIT_TIME is set. Verifies after it if RUNE_JIT_VERIFY is set or the pass ends a stage.
// Throws InternalError for a violation.
void run_pass(const Pass& pass, State& state);

// Runs the passes from the state's stage on, up to and including `stop_after` (empty: all).
void run_pipeline(State& state, const std::string& stop_after = "");

// The IR that the state is in.
std::string print(const State& state);
// The violations of the IR that the state is in.
std::vector<std::string> verify(const State& state);
// Reads a graph, a schedule or kernels; the text's first word says which.
State parse(std::string_view text, const Capabilities& caps);

}  // namespace rune::driver
