// Measures this machine's figures for the cost model.
#pragma once

#include "types/capabilities.h"

namespace rune::runtime {

// The cost model's figures that are measured. Rates are those of all cores together unless stated.
struct CpuFigures {
  double bandwidth_bytes_per_ns = 0;       // main memory
  double core_bandwidth_bytes_per_ns = 0;  // main memory, one core
  double last_level_bytes_per_ns = 0;
  double l2_bytes_per_ns = 0;
  double float32_operations_per_ns = 0;
  double float64_operations_per_ns = 0;
  double int32_operations_per_ns = 0;
  double int64_operations_per_ns = 0;
  double launch_ns = 0;
  double parallel_ns = 0;
  template <class F>
  void fields(F&& f) {
    f("bandwidth_bytes_per_ns", bandwidth_bytes_per_ns);
    f("core_bandwidth_bytes_per_ns", core_bandwidth_bytes_per_ns);
    f("last_level_bytes_per_ns", last_level_bytes_per_ns);
    f("l2_bytes_per_ns", l2_bytes_per_ns);
    f("float32_operations_per_ns", float32_operations_per_ns);
    f("float64_operations_per_ns", float64_operations_per_ns);
    f("int32_operations_per_ns", int32_operations_per_ns);
    f("int64_operations_per_ns", int64_operations_per_ns);
    f("launch_ns", launch_ns);
    f("parallel_ns", parallel_ns);
  }
};

// The figures in `caps`.
CpuFigures figures_of(const Capabilities& caps);

// Measures for about 25 ms. A figure has two digits, and is limited to a factor of four around the
// one in `caps`, however busy the machine is.
CpuFigures measure_cpu(const Capabilities& caps);

// Replaces the figures in `caps`. Throws UserError(Value) that names a figure if it is not positive
// and finite.
void set_figures(Capabilities& caps, const CpuFigures& figures);

}  // namespace rune::runtime
