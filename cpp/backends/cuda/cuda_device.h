// NVIDIA GPUs, behind NVIDIA's driver and NVRTC, both of which are loaded when they are first
// needed.
#pragma once

#include <memory>

#include "runtime/device.h"

namespace rune::cuda {

// Opens device number `ordinal`. Its capabilities are the general ones (cuda_capabilities.h), but
// for what its driver reports. Throws UserError(Runtime), with what to install, if this machine has
// no such device, no driver or an old one.
//
// A launch returns at once. synchronize(), and reading memory, wait for the launches before and
// throw the error of one that failed. The device must live as long as the process.
std::shared_ptr<runtime::Device> make_device(int ordinal);

// The driver's version, the devices, and NVRTC's version; or why there is none. One line each.
std::string describe();

}  // namespace rune::cuda
