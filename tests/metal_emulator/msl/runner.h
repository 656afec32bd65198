// Runs kernels over grids of threadgroups on one core, and checks what they do.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "library.h"

namespace rune::msl_emulator {

constexpr size_t kMaxThreadgroupBytes = 32 << 10;
constexpr unsigned kMaxThreads = 1024;
constexpr unsigned kSimdWidth = 32;

// The layout of rune_msl::Host in include/metal_stdlib.
struct Host {
  void (*access)(const void* address, unsigned bytes, int kind);  // 0 reads, 1 writes, 2 is atomic
  void (*declare)(const void* address, unsigned long bytes, const char* name);
  void (*barrier)(int flags, int line);
  const char* (*exchange)(const void* value, unsigned bytes, int line, unsigned* lanes,
                          unsigned* lane);
};
const Host* host_functions();

struct BoundBuffer {
  char* memory = nullptr;  // null: nothing is bound
  size_t bytes = 0;        // from `memory` on
};

struct Launch {
  std::array<unsigned, 3> grid{1, 1, 1};   // threadgroups
  std::array<unsigned, 3> local{1, 1, 1};  // threads of each
  // Of the whole grid, where the last threadgroups may have fewer (dispatchThreads); 0: none have.
  std::array<unsigned, 3> threads{0, 0, 0};
  std::vector<BoundBuffer> buffers;    // by index
  std::vector<BoundBuffer> resources;  // memory that the kernel has addresses of
  bool reversed = false;               // last threads and threadgroups first
};

// Runs to the end. Returns "" or what went wrong first, after which the launch was given up: an
// access outside of what is bound, a read of threadgroup memory that nothing has written, a data
// race, a barrier or SIMD-group operation that not all threads reach, more than 1024 threads or 32
// KiB of threadgroup memory, a fault of the machine. An access behind a buffer is found if no other
// bound buffer lies there. Denormal floats are flushed to zero. Safe to call from several threads;
// one launch runs at a time.
std::string run(const Kernel& kernel, const Launch& launch);

}  // namespace rune::msl_emulator
