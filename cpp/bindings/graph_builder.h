// The Python object for a graph under construction.
#pragma once

#include <memory>
#include <set>

#include "graph/numpy/operands.h"

namespace rune::bindings {

// rune_jit._core.GraphBuilder. `trace` distinguishes its sizes from those of other traces.
struct PyGraph : graph::numpy::TracedGraph {
  std::shared_ptr<const void> trace = std::make_shared<char>();
  size_t most = ~size_t{0};  // the most nodes that it may have
  // Whether it may have many nodes only if NumPy's time for them is worth compiling them.
  bool must_pay = false;
  // The state of that check: the number of nodes allowed so far, whether all nodes are worth
  // compiling, how many nodes have been counted, and the estimated times for these.
  mutable size_t allowed = 0;
  mutable bool pays = true;
  mutable uint32_t counted = 0;
  mutable double numpy_ns = 0, compile_ns = 0;
  mutable std::set<Ints> kernels;  // the graph::kernel_sizes that have been counted
  // A trace in segments need not look at the graph until it has more nodes than this, or a check.
  size_t quiet_until = 0;
};

}  // namespace rune::bindings
