// The functions of the Python front end that this backend needs.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace rune::cuda {

// Functions of the Python front end. Each may be absent. They are called from any thread.
struct Services {
  // Files of NVRTC that may be loaded, the preferred one first. The system's folders are searched
  // after them.
  std::function<std::vector<std::string>()> nvrtc_files;
  // Files of cuBLAS that may be loaded, the preferred one first. Their names end with CUDA's major
  // version.
  std::function<std::vector<std::string>()> cublas_files;
  // Read and write code that is kept on disk under a key. If reading fails, the text is compiled
  // again.
  std::function<std::optional<std::string>(const std::string& key)> read_cache;
  std::function<void(const std::string& key, const std::string& code)> write_cache;
};

// The front end sets them once, before a device is opened.
Services& services();

}  // namespace rune::cuda
