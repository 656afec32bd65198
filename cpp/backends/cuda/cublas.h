// cuBLAS, NVIDIA's library of matrix products, which the Python packages `nvidia-cublas` (CUDA 13)
// and `nvidia-cublas-cu12` install. The backend works without it.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backends/cuda/context.h"
#include "runtime/device.h"

namespace rune::cuda {

// Returns the files of cuBLAS that may work with a driver of this version (12040 is CUDA 12.4), the
// preferred one first. Does not load them.
std::vector<std::string> cublas_files(int driver_version);

// Makes programs that compute products on a device. Thread-safe.
class Cublas {
 public:
  explicit Cublas(Context& context) : context_(context) {}

  // Returns a program that computes the source's product. Returns null if no cuBLAS can be loaded,
  // or if it does not work with this driver. The first call loads cuBLAS.
  std::shared_ptr<runtime::Program> program(const runtime::KernelSource& source);

  struct Library;

 private:
  Context& context_;
  std::once_flag once_;
  std::shared_ptr<Library> library_;
};

}  // namespace rune::cuda
