// The capabilities of a typical NVIDIA GPU, for rendering on machines that have none.
#pragma once

#include "types/capabilities.h"

namespace rune::cuda {

Capabilities capabilities();
// The rates of products, by cuBLAS and by kernels, on a device with this many multiprocessors.
std::vector<LibraryRate> library_rates(int num_multiprocessors);

}  // namespace rune::cuda
