// Measures this machine for the cost model.
#pragma once

#include "types/capabilities.h"

namespace rune::runtime {

// Figures of the cost model, by name, that measuring finds: rates are of all cores together.
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

// The figures that `caps` has now.
CpuFigures figures_of(const Capabilities& caps);

// Measures for some 25 ms. A figure deviates by at most a factor of four from that in `caps`,
// however busy the machine is, and keeps two digits.
CpuFigures measure_cpu(const Capabilities& caps);

// Replaces the figures in `caps`. Throws UserError(Value) that names a figure which is not a
// positive finite number.
void set_figures(Capabilities& caps, const CpuFigures& figures);

}  // namespace rune::runtime
