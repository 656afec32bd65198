// The Metal backend behind one plain C++ header.
#pragma once

#include <memory>

#include "runtime/device.h"

namespace rune::metal {

// What Apple's GPUs can do in general, for rendering on machines that have none.
Capabilities capabilities();

// The system's default GPU, whose capabilities are the general ones, but for what it reports
// itself. Throws UserError(Runtime) where there is no GPU or the system is older than macOS 14, and
// in a build without Metal (it is built on macOS only).
//
// Memory of the device is shared with the host: allocator() gives addresses that both may use, and
// a program's buffers may lie anywhere inside of one. A launch only encodes; synchronize() waits
// and throws the first error that the GPU reported since the last call, with the kernels' names.
std::shared_ptr<runtime::Device> make_device();
bool is_available();

}  // namespace rune::metal
