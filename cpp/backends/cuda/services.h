// What this backend needs of the Python front end.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace rune::cuda {

// All may be absent, and may be called from any thread.
struct Services {
  // Files of NVRTC that may be loaded, the preferred one first. The system's folders are searched
  // after them.
  std::function<std::vector<std::string>()> nvrtc_files;
  // Files of cuBLAS that may be loaded, the preferred one first; their names end with CUDA's major
  // version.
  std::function<std::vector<std::string>()> cublas_files;
  // Code that was kept on disk under a key. Failures are no errors: the text is compiled again.
  std::function<std::optional<std::string>(const std::string& key)> read_cache;
  std::function<void(const std::string& key, const std::string& code)> write_cache;
};

// Set once, before a device is opened.
Services& services();

}  // namespace rune::cuda
