#include "backends/cuda/library.h"

#include <dlfcn.h>

namespace rune::cuda {

Library::Library(const std::string& file) : handle_(dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (handle_) return;
  const char* const reason = dlerror();
  error_ = reason ? reason : file + ": no reason was given";
}

void* Library::find(const char* symbol) const {
  return handle_ ? dlsym(handle_, symbol) : nullptr;
}

}  // namespace rune::cuda
