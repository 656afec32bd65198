// A device that does everything as late as it may, so that tests find who does not wait for it.
#pragma once

#include <memory>

#include "runtime/device.h"

namespace rune::runtime {

// Runs the programs of `device`, whose memory must be the host's. Launches and copies within the
// device run when somebody waits for them, not before. Memory is filled with 0xa5 when it is
// allocated and with 0xff (NaN, in floats) when it is freed, after the launches before.
std::shared_ptr<Device> make_delayed_device(std::shared_ptr<Device> device);

}  // namespace rune::runtime
