// NVRTC, NVIDIA's compiler of CUDA C++, which the Python packages `nvidia-cuda-nvrtc` (CUDA 13) and
// `nvidia-cuda-nvrtc-cu12` install.
#pragma once

#include <string>
#include <vector>

namespace rune::cuda {

struct Image {
  std::string bytes;  // a cubin or PTX
  std::string log;    // the compiler's messages
};

// A loaded NVRTC.
class Nvrtc {
 public:
  struct Functions;

  // Returns the first NVRTC whose major version of CUDA is at most that of the driver (12040 is
  // CUDA 12.4), or any for 0. Throws UserError(Runtime), with what to install, if there is none.
  static const Nvrtc& find(int driver_version);

  // 13005 for CUDA 13.5.
  int version() const { return version_; }

  // Returns the newest architecture up to this one that NVRTC knows. Throws UserError(Runtime) if
  // there is none.
  int target(int architecture) const;

  // Returns the options for an architecture (90 is compute capability 9.0). With them NVRTC makes
  // PTX if `is_portable` is set or if NVRTC is older than the architecture, and a cubin otherwise.
  std::vector<std::string> options(int architecture, bool is_portable = false) const;

  // Compiles a text by these options. Throws UserError(Runtime) with the compiler's messages.
  Image compile(const std::string& text, const std::vector<std::string>& options) const;

 private:
  Nvrtc(const Functions* functions, int version) : functions_(functions), version_(version) {}
  const Functions* functions_;
  int version_;
};

}  // namespace rune::cuda
