// Records the GPU's commands for Xcode.
#pragma once

#include "metal/objects.h"

namespace rune::metal {

// If RUNE_JIT_METAL_CAPTURE names a file, records all commands of the device there, from now to the
// end of the process. Throws UserError(Runtime) with Metal's reason if Metal cannot record.
void start_capture(id<MTLDevice> device);

}  // namespace rune::metal
