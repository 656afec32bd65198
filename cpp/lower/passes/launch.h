// What a kernel and its phases share while they are lowered.
#pragma once

#include <vector>

#include "lower/scoped_builder.h"
#include "schedule/schedule.h"

namespace rune::lower {

// Several launches run the same instructions. In one of them, elements of `input` are read further
// along `axis` than in the kernel lowered, by the launch's argument of this number.
struct Shift {
  schedule::Value input;
  int64_t axis = 0;
  size_t argument = 0;
};

// The kernel whose arguments are the globals, the graph's variables, and the instructions that they
// become. All that it refers to must outlive it.
struct Launch {
  Launch(const schedule::Graph& graph, const schedule::Kernel& kernel,
         const std::vector<SymVar>& vars, const Capabilities& caps);

  const schedule::Graph& graph;
  const schedule::Kernel& kernel;
  const std::vector<SymVar>& vars;
  const Capabilities& caps;
  const DType index_dtype;
  std::vector<SymVar> arguments;  // of the launch
  std::vector<Shift> shifts;
  ScopedBuilder builder;
};

}  // namespace rune::lower
