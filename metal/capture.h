// A recording of what the GPU is told to do, for Xcode.
#pragma once

#include "metal/objects.h"

namespace rune::metal {

// Records all of a device's commands, from here to the process's end, in the file that
// RUNE_JIT_METAL_CAPTURE names, if it names one. Throws UserError(Runtime) with Metal's reason if
// Metal does not record.
void start_capture(id<MTLDevice> device);

}  // namespace rune::metal
