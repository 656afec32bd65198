// The Metal Shading Language as the emulator executes it.
#pragma once

#include <string>

#include "gpu_emulator/library.h"

namespace rune::msl_emulator {

// `include` has metal_stdlib; `version` of the language is what __METAL_VERSION__ names.
gpu_emulator::Language language(const std::string& include, int version = 320);

}  // namespace rune::msl_emulator
