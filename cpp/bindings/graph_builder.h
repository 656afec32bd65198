// Graphs under construction, as Python has them.
#pragma once

#include <memory>

#include "graph/numpy/operands.h"

namespace rune::bindings {

// rune_jit._core.GraphBuilder. `trace` tells its sizes from those of other traces.
struct PyGraph : graph::numpy::TracedGraph {
  std::shared_ptr<const void> trace = std::make_shared<char>();
  size_t most = ~size_t{0};  // how many nodes it may have
};

}  // namespace rune::bindings
