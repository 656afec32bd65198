// The state that a kernel and its phases share while they are lowered.
#pragma once

#include <map>
#include <vector>

#include "lower/scoped_builder.h"
#include "schedule/schedule.h"

namespace rune::lower {

// The place where a kernel stores an output: a part of an array, from these offsets on. `part` is
// the shape of the output, whose elements are in row-major order.
struct Placement {
  Shape part, array;
  std::vector<Dim> offsets;
};
using Placements = std::map<schedule::Value, Placement>;

// The values behind a lowered kernel's globals, by index, given its inputs and outputs.
std::vector<schedule::Value> kernel_arguments(const std::vector<schedule::Value>& inputs,
                                              const std::vector<schedule::Value>& outputs);

// The kernel that is lowered, whose arguments are the globals; the graph's variables; and the
// builder of the instructions. All objects that it refers to must outlive it.
struct Launch {
  Launch(const schedule::Graph& graph, const schedule::Kernel& kernel,
         const std::vector<SymVar>& vars, const Capabilities& caps, const Placements& placements);

  const schedule::Graph& graph;
  const schedule::Kernel& kernel;
  const std::vector<SymVar>& vars;
  const Capabilities& caps;
  const Placements& placements;  // of outputs, by value
  const DType index_dtype;
  ScopedBuilder builder;
};

}  // namespace rune::lower
