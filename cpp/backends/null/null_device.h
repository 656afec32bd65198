// A device that runs nothing. Tests use it for everything above the backends, and people to read
// what a GPU would be given.
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
