// From the Scheduled IR to the Lowered IR: loops from mapping and tiles, values by index
// propagation.
#pragma once

#include <vector>

#include "lower/instr.h"
#include "schedule/schedule.h"

namespace rune::lower {

// Lowers the kernels of a schedule, in item order. Global `i` is kernel.inputs[i], then the outputs
// that are not inputs. Kernels of one structure (schedule/structure.h) are lowered once and share
// their body; how much further along an input each of them reads is an argument of its launch. All
// scalar operations of alu.def may occur; `decompose` removes those that the target lacks.
std::vector<Kernel> lower_schedule(const schedule::Schedule& schedule, const Capabilities& caps);

// The buffers behind a lowered kernel's globals, by index.
std::vector<schedule::Value> kernel_arguments(const schedule::Kernel& kernel);

}  // namespace rune::lower
