// For ctypes (tests/python/msl_emulator.py).
#include <cstring>
#include <exception>

#include "gpu_emulator/runner.h"
#include "msl.h"

using namespace rune::gpu_emulator;

extern "C" {

struct rune_msl_library {
  std::shared_ptr<Library> library;
};

// Null, and the compiler's messages in `error`.
__attribute__((visibility("default"))) rune_msl_library* rune_msl_compile(
    const char* text, const char* include, const char* cache, char* error, size_t error_bytes) {
  try {
    return new rune_msl_library{
        Library::compile(rune::msl_emulator::language(include), text, cache)};
  } catch (const std::exception& e) {
    std::strncpy(error, e.what(), error_bytes - 1);
    return nullptr;
  }
}

__attribute__((visibility("default"))) void rune_msl_release(rune_msl_library* library) {
  delete library;
}

// 0; or 1 and what went wrong in `error`. `grid` and `local` are 3 numbers, buffers by index.
__attribute__((visibility("default"))) int rune_msl_run(const rune_msl_library* library,
                                                        const char* kernel, char* const* memory,
                                                        const size_t* bytes, size_t buffers,
                                                        const unsigned* grid, const unsigned* local,
                                                        int reversed, char* error,
                                                        size_t error_bytes) {
  const Kernel* found = library->library->find(kernel);
  std::string message;
  if (!found) {
    message = std::string("kernel ") + kernel + " is not in the library";
  } else {
    Launch launch;
    launch.grid = {grid[0], grid[1], grid[2]};
    launch.local = {local[0], local[1], local[2]};
    for (size_t i = 0; i < buffers; ++i) launch.buffers.push_back({memory[i], bytes[i]});
    launch.reversed = reversed != 0;
    message = run(*found, launch);
  }
  std::strncpy(error, message.c_str(), error_bytes - 1);
  return message.empty() ? 0 : 1;
}

}  // extern "C"
