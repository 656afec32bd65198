// A device that runs nothing. Tests use it for everything above the backends. People use it to read
// the kernels that a GPU would get.
#pragma once

#include <memory>

#include "runtime/device.h"

namespace rune::runtime {

// Allocates and copies host memory, and accepts any text as a program. A launch throws
// UserError(Runtime).
std::shared_ptr<Device> make_null_device();

// The interpreter's capabilities, without the operations that combine values of several threads.
Capabilities null_capabilities();

}  // namespace rune::runtime
