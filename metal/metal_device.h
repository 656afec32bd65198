// The Metal backend behind one plain C++ header.
#pragma once

#include <memory>
#include <string>

#include "runtime/device.h"

namespace rune::metal {

// The system's default GPU. Throws UserError(Runtime) where there is none, or where this build has no
// Metal (it is built on macOS only).
std::shared_ptr<runtime::Device> make_device();
bool is_available();

}  // namespace rune::metal
