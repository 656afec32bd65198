// A device that runs nothing: for tests of everything above the backends, and to read what a GPU
// would be given without having one.
#pragma once

#include <memory>

#include "runtime/device.h"

namespace rune::runtime {

// Allocates host memory, copies and compiles (any text); launching throws UserError(Runtime).
std::shared_ptr<Device> make_null_device();

// A grid device of 256 threads a group and 32 KiB of shared memory that computes everything itself.
Capabilities null_capabilities();

}  // namespace rune::runtime
