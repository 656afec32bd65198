// Lowers the Scheduled IR to the Lowered IR. Mapping and tiles determine the loops, and index
// propagation determines the values.
#pragma once

#include <vector>

#include "lower/instr.h"
#include "lower/passes/launch.h"
#include "schedule/schedule.h"

namespace rune::lower {

// Lowers the kernels of a schedule, in order. The globals are kernel.inputs in order, followed by
// the outputs that are not inputs. The last Define_Vars are the arguments of a launch. The result
// may contain all scalar operations of alu.def; `decompose` removes those that the target lacks.
//
// An output with a placement is stored to that part of an array. The array's memory is then the
// kernel's argument for the output. Its kernel has a single launch, and no kernel reads it.
std::vector<Kernel> lower_schedule(const schedule::Schedule& schedule, const Capabilities& caps,
                                   const Placements& placements = {});

}  // namespace rune::lower
