// Records the GPU's commands for Xcode.
#pragma once

#include "metal/objects.h"

namespace rune::metal {

// If RUNE_JIT_METAL_CAPTURE names a file, records all later commands of the device in it, until the
// process ends. Throws UserError(Runtime) with Metal's reason if Metal cannot record.
void start_capture(id<MTLDevice> device);

}  // namespace rune::metal
