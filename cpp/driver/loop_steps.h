// Loops that the host runs, on a device with a grid. The kernels of an iteration are launched on
// all threads, and the loops around them are steps of the program.
#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "driver/loop_computes.h"

namespace rune::driver {

// Memory that the steps use: the memory of an input or output of the schedule's item, a constant,
// or a part of the steps' own memory.
struct LoopMemory {
  std::optional<size_t> input = std::nullopt, output = std::nullopt;
  std::vector<Scalar> constant = {};
  int64_t offset = 0;  // bytes, in the memory of the steps
  int64_t bytes = 0;
};

// Launches a kernel on `memory`, by argument. The kernel's variables are `variables`, followed by
// the launch's `arguments`, as in the schedule.
struct LoopLaunch {
  // One of LoopSteps::computes, and an item of its schedule.
  struct Item {
    size_t compute = 0, item = 0;
  };
  size_t kernel = 0;                 // of LoopSteps::kernels
  std::optional<Item> of;            // nothing if each thread runs an iteration of loops
  std::vector<size_t> memory;        // numbers of LoopSteps::memory
  std::vector<SymVar> variables;     // of the program or of the loops, or bound by LoopReads
  std::vector<int64_t> arguments{};  // values
  double operations = 0;             // if one thread did the work of all
  double ns = 0;                     // the time in addition to that of a small launch
};

// Copies all of one memory to another one of the same size.
struct LoopCopy {
  size_t to = 0, from = 0;
};

// Gives a variable the value of an int64 in memory.
struct LoopRead {
  SymVar variable;
  size_t memory = 0;
};

struct LoopStep;
struct LoopTurn;

// Runs the body in each iteration. The memory of `goes_on` is one of LoopSteps::memory.
struct LoopRepeat : LoopRange {
  std::vector<LoopStep> body;
  // If there are any, iterations run the body and these in turns.
  std::vector<LoopTurn> turns;
};

struct LoopStep {
  std::variant<LoopLaunch, LoopCopy, LoopRead, LoopRepeat> action;
};

// The body on the memory that an iteration has after exchanges.
struct LoopTurn {
  std::vector<LoopStep> body;
  // The steps after the loop if this body would be the next one: copies to the memory from which
  // the loop's results are read.
  std::vector<LoopStep> end;
};

struct LoopSteps {
  std::vector<LoweredCompute> computes;
  std::vector<lower::Kernel> kernels;
  std::vector<LoopMemory> memory;
  std::vector<LoopStep> steps;
  int64_t arena_bytes = 0;  // the size of the steps' own memory
};

// Lowers the plan's Computes for a grid. Loops whose iterations may run side by side become kernels
// of which each thread runs one iteration, if that takes less time. `variables` are the program's.
// `number` is the number of this nest in the program; it is part of the kernels' names.
LoopSteps lower_steps(LoopPlan plan, const Capabilities& caps, const std::string& device,
                      std::vector<SymVar> variables, size_t number);

// Estimate the time of all iterations if the host runs the loops, and if one thread of the grid
// runs them.
double host_ns(const LoopSteps& steps, const Capabilities& caps);
double thread_ns(const LoopSteps& steps, const Capabilities& caps);
// Estimates the number of launches of the steps.
double count_launches(const std::vector<LoopStep>& steps);

}  // namespace rune::driver
