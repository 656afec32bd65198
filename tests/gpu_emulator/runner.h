// Runs kernels over grids of threadgroups on one core, and checks what they do.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "gpu_emulator/library.h"

namespace rune::gpu_emulator {

constexpr size_t kMaxThreadgroupBytes = 32 << 10;  // unless the launch says otherwise
constexpr unsigned kMaxThreads = 1024;
constexpr unsigned kSimdWidth = 32;

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
  size_t max_threadgroup_bytes = kMaxThreadgroupBytes;
  bool keeps_denormals = false;  // instead of flushing them to zero
};

// Runs to the end. Returns "" or what went wrong first, after which the launch was given up: an
// access outside of what is bound, a read of threadgroup memory that nothing has written, a data
// race, a barrier or SIMD-group operation that not all threads reach, more threads or
// threadgroup memory than there may be, a fault of the machine. An access behind a buffer is found
// if no other bound buffer lies there. Safe to call from several threads; one launch runs at a
// time.
std::string run(const Kernel& kernel, const Launch& launch);

}  // namespace rune::gpu_emulator
