// What an NVIDIA GPU can do in general, for rendering on machines that have none.
#pragma once

#include "types/capabilities.h"

namespace rune::cuda {

Capabilities capabilities();
// How fast cuBLAS and kernels compute products on a device with this many multiprocessors.
std::vector<LibraryRate> library_rates(int num_multiprocessors);

}  // namespace rune::cuda
