// The Python object for a graph under construction.
#pragma once

#include <memory>

#include "graph/numpy/operands.h"

namespace rune::bindings {

// rune_jit._core.GraphBuilder. `trace` tells its sizes from those of other traces.
struct PyGraph : graph::numpy::TracedGraph {
  std::shared_ptr<const void> trace = std::make_shared<char>();
  size_t most = ~size_t{0};  // the most nodes that it may have
  // Whether it may have many nodes only if NumPy takes long for them.
  bool must_pay = false;
  // The state of that check: the number of nodes that are allowed so far, whether all nodes pay,
  // how many have been counted, and the estimated times of these.
  mutable size_t allowed = 0;
  mutable bool pays = true;
  mutable uint32_t counted = 0;
  mutable double numpy_ns = 0, compile_ns = 0;
  // Until it has more nodes, or a check, its trace in segments need not look at it.
  size_t quiet_until = 0;
};

}  // namespace rune::bindings
