// The Metal backend behind one plain C++ header.
#pragma once

#include <memory>

#include "runtime/device.h"

namespace rune::metal {

// The system's default GPU. `general` is what is true of Apple's GPUs in general; what this one
// reports replaces its part of it. Throws UserError(Runtime) where there is no GPU or the system is
// older than macOS 14, and in a build without Metal (it is built on macOS only).
//
// Memory of the device is shared with the host: allocator() gives addresses that both may use, and
// a program's buffers may lie anywhere inside of one. A launch only encodes; synchronize() waits
// and throws the first error that the GPU reported since the last call, with the kernels' names.
std::shared_ptr<runtime::Device> make_device(const Capabilities& general);
bool is_available();

}  // namespace rune::metal
