// What an NVIDIA GPU can do in general, for rendering on machines that have none.
#pragma once

#include "types/capabilities.h"

namespace rune::cuda {

Capabilities capabilities();
// The rates of cuBLAS and of kernels on a device of so many multiprocessors.
std::vector<LibraryRate> library_rates(int num_multiprocessors);

}  // namespace rune::cuda
