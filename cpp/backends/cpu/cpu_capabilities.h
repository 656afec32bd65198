// The capabilities of this machine, for the stages above the backend.
#pragma once

#include <map>
#include <string>

#include "types/capabilities.h"

namespace rune::runtime {

// The figures of the cost model that are measured, by name. Rates are those of all cores together
// unless the name says otherwise.
using CpuFigures = std::map<std::string, double>;

// The capabilities that the processor and the operating system report, read once. num_cores counts
// the cores that this process may run on. The cost model's figures are rough: they follow from the
// number of cores and the width of vectors.
const Capabilities& built_in_cpu_capabilities();

// The built-in capabilities with the figures of the last calibrate_cpu, if there was one. When
// calibrate_cpu is called again, the reference stays valid and keeps its figures.
const Capabilities& cpu_capabilities();

// Replaces the cost model's figures for programs that are lowered from now on. Thread-safe. Throws
// what set_figures throws.
void calibrate_cpu(const CpuFigures& figures);

}  // namespace rune::runtime
