// The Metal backend behind one plain C++ header.
#pragma once

#include <memory>

#include "runtime/device.h"

namespace rune::metal {

// The capabilities of a typical GPU of Apple's, for rendering on machines that have none.
Capabilities capabilities();

// The system's default GPU. Its capabilities are those that it reports, and otherwise the typical
// ones. Throws UserError(Runtime) if there is no GPU, if the system is older than macOS 14, or if
// the build has no Metal (only builds on macOS have it).
//
// The device shares its memory with the host: both may use the addresses that allocator() returns,
// and a program's buffer may be any part of such memory. A launch only encodes commands.
// synchronize() waits, and throws the first error that the GPU reported since the last call, with
// the kernels' names.
std::shared_ptr<runtime::Device> make_device();
bool is_available();

}  // namespace rune::metal
