// Graphs under construction, as Python has them.
#pragma once

#include <memory>

#include "graph/numpy/operands.h"

namespace rune::bindings {

// rune_jit._core.GraphBuilder. `trace` tells its sizes from those of other traces.
struct PyGraph : graph::numpy::TracedGraph {
  std::shared_ptr<const void> trace = std::make_shared<char>();
  size_t most = ~size_t{0};  // how many nodes it may have
  // Whether it may have many only if NumPy takes long for them.
  bool must_pay = false;
  // Of a check: so many nodes are in order, whether all are, and what they take.
  mutable size_t allowed = 0;
  mutable bool pays = true;
  mutable uint32_t counted = 0;
  mutable double numpy_ns = 0, compile_ns = 0;
};

}  // namespace rune::bindings
