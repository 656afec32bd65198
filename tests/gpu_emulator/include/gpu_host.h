// What a kernel that the host executes and the runner (runner.cpp) know of each other. Both include
// this file; kernels are compiled without the standard library.
#pragma once

namespace rune::gpu_emulator {

struct alignas(16) Id {
  unsigned x = 0, y = 0, z = 0, unused = 0;
};

struct Ids {
  Id threadgroup_position_in_grid, thread_position_in_threadgroup, thread_position_in_grid;
  Id threads_per_threadgroup, threadgroups_per_grid;
  Id thread_index_in_threadgroup, thread_index_in_simdgroup, simdgroup_index_in_threadgroup;
};

// What the runner does for a kernel.
struct Host {
  void (*access)(const void* address, unsigned bytes, int kind);  // 0 reads, 1 writes, 2 is atomic
  void (*declare)(const void* address, unsigned long bytes, const char* name);
  void (*barrier)(int flags, int line);  // 1: of device memory, 2: of threadgroup memory
  // Publishes a value of at most 16 bytes to the SIMD-group; returns all lanes' values, 16 bytes
  // apart, which stay until the next operation of the group, and their number.
  const char* (*exchange)(const void* value, unsigned bytes, int line, unsigned* lanes,
                          unsigned* lane);
};

}  // namespace rune::gpu_emulator
