// CUDA text as tests/gpu_emulator executes it.
#pragma once

#include <string>

#include "gpu_emulator/library.h"

namespace rune::cuda_emulator {

// Inline assembly becomes calls of the functions in include/cuda_builtins.h that are named after
// the instruction. Refuses what the text of kernels must not have: variables of blocks outside of
// kernels, two kernels of one name, assembly in another form than `asm("..." : outputs : inputs)`.
gpu_emulator::Language language();

}  // namespace rune::cuda_emulator
