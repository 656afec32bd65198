// A device that does everything as late as possible. Tests use it to find code that fails to wait
// for a device.
#pragma once

#include <memory>

#include "runtime/device.h"

namespace rune::runtime {

// Runs the programs of `device`, whose memory must be the host's. Launches and copies within the
// device run only when somebody waits for them. Memory is filled with 0xa5 when it is allocated.
// Freed memory is filled with 0xff (NaN, in floats) once earlier launches have run.
std::shared_ptr<Device> make_delayed_device(std::shared_ptr<Device> device);

}  // namespace rune::runtime
