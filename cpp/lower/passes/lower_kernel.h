// Lowers the Scheduled IR to the Lowered IR. Mapping and tiles give the loops; index propagation
// gives the values.
#pragma once

#include <vector>

#include "lower/instr.h"
#include "schedule/schedule.h"

namespace rune::lower {

// Lowers the kernels of a schedule, in the order of its items. The globals are kernel.inputs in
// order, followed by the outputs that are not inputs. Kernels of equal structure
// (schedule/structure.h) are lowered once and share their body; the offset at which each of them
// reads an input is an argument of its launch. The result may contain all scalar operations of
// alu.def; `decompose` removes those that the target lacks.
std::vector<Kernel> lower_schedule(const schedule::Schedule& schedule, const Capabilities& caps);

// The values whose buffers are a lowered kernel's globals, by index.
std::vector<schedule::Value> kernel_arguments(const schedule::Kernel& kernel);

}  // namespace rune::lower
