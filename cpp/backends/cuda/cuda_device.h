// NVIDIA GPUs. NVIDIA's driver and NVRTC are loaded when they are first needed.
#pragma once

#include <memory>

#include "runtime/device.h"

namespace rune::cuda {

// Opens device number `ordinal`. Its capabilities are those that the driver reports, and otherwise
// the typical ones (cuda_capabilities.h). Throws UserError(Runtime), with what to install, if this
// machine has no such device, no driver or an old one.
//
// A launch returns at once. synchronize() and reading memory wait for earlier launches and throw
// the error of one that failed. The device must live as long as the process.
std::shared_ptr<runtime::Device> make_device(int ordinal);

// The driver's version, the devices, and NVRTC's version, one line each. A missing one's line says
// why.
std::string describe();

}  // namespace rune::cuda
