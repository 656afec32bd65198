// What a kernel and its phases share while they are lowered.
#pragma once

#include <vector>

#include "lower/scoped_builder.h"
#include "schedule/schedule.h"

namespace rune::lower {

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
  ScopedBuilder builder;
};

}  // namespace rune::lower
