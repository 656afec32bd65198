// What an NVIDIA GPU can do in general, for rendering on machines that have none.
#pragma once

#include "types/capabilities.h"

namespace rune::cuda {

Capabilities capabilities();

}  // namespace rune::cuda
