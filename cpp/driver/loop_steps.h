// Loops that the host runs: on a device with a grid, the kernels of an iteration are launches of
// all its threads, and the loops around them are steps of the program.
#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "driver/loop_computes.h"

namespace rune::driver {

// Memory that the steps use: of an input or output of the schedule's item, of a constant, or a
// place in the memory that the steps have for themselves.
struct LoopMemory {
  std::optional<size_t> input = std::nullopt, output = std::nullopt;
  std::vector<Scalar> constant = {};
  int64_t offset = 0;  // bytes, in the memory of the steps
  int64_t bytes = 0;
};

// Launches a kernel on `memory`, by argument. Its first variables are these, its last ones the
// launch's arguments, as in the schedule.
struct LoopLaunch {
  // One of LoopSteps::computes, and an item of its schedule.
  struct Item {
    size_t compute = 0, item = 0;
  };
  size_t kernel = 0;                 // of LoopSteps::kernels
  std::optional<Item> of;            // nothing: loops, of which each thread runs an iteration
  std::vector<size_t> memory;        // numbers of LoopSteps::memory
  std::vector<SymVar> variables;     // of the program, of the loops, or bound by LoopReads
  std::vector<int64_t> arguments{};  // values
  double operations = 0;             // of one thread, if one alone does what all do
  double ns = 0;                     // beyond that of a launch which does little
};

// Copies all of a memory to another one of the same size.
struct LoopCopy {
  size_t to = 0, from = 0;
};

// Gives a variable the int64 in a memory.
struct LoopRead {
  SymVar variable;
  size_t memory = 0;
};

struct LoopStep;
struct LoopTurn;

// The memory of `goes_on` is one of LoopSteps::memory.
struct LoopRepeat : LoopRange {
  std::vector<LoopStep> body;
  // Iterations run the body and these in turns.
  std::vector<LoopTurn> turns;
};

struct LoopStep {
  std::variant<LoopLaunch, LoopCopy, LoopRead, LoopRepeat> action;
};

// The body on memory that iterations exchange.
struct LoopTurn {
  std::vector<LoopStep> body;
  // The steps that follow the loop if it ends where this body would be next: copies to the memory
  // from which the loop's results are read.
  std::vector<LoopStep> end;
};

struct LoopSteps {
  std::vector<LoweredCompute> computes;
  std::vector<lower::Kernel> kernels;
  std::vector<LoopMemory> memory;
  std::vector<LoopStep> steps;
  int64_t arena_bytes = 0;  // of the memory that the steps have for themselves
};

// Lowers the plan's Computes for a grid, and loops whose iterations may run side by side as kernels
// of which each thread runs an iteration, where that takes less time. `variables` are the
// program's. `number` is that of the loops among the program's, which is part of the kernels'
// names.
LoopSteps lower_steps(LoopPlan plan, const Capabilities& caps, const std::string& device,
                      std::vector<SymVar> variables, size_t number);

// Estimates of how long all iterations take: with the host running the loops, and in one thread of
// the grid.
double host_ns(const LoopSteps& steps, const Capabilities& caps);
double thread_ns(const LoopSteps& steps, const Capabilities& caps);
// Of how many launches they have.
double count_launches(const std::vector<LoopStep>& steps);

}  // namespace rune::driver
