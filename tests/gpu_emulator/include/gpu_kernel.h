// What is compiled into every kernel that the host executes: the way to the runner, variables of
// threadgroups, and the callbacks of clang's instrumentation.
#pragma once
#pragma clang system_header

#include "gpu_host.h"

namespace rune_gpu {

using rune::gpu_emulator::Id;
using rune::gpu_emulator::Ids;

extern "C"
    __attribute__((visibility("default"))) inline const rune::gpu_emulator::Host* rune_gpu_host =
        nullptr;

#define RUNE_UNCHECKED __attribute__((no_sanitize("thread")))

RUNE_UNCHECKED __attribute__((noinline)) static void declare(const void* memory,
                                                             unsigned long bytes,
                                                             const char* name) {
  rune_gpu_host->declare(memory, bytes, name);
}

}  // namespace rune_gpu

#define RUNE_THREADGROUP(section_name) static __attribute__((section(section_name)))
#define RUNE_GAP(number) __attribute__((used, aligned(16))) char rune_gap_##number[64];
#define RUNE_DECLARE(name) ::rune_gpu::declare(&(name), sizeof(name), #name);

// The instrumentation of -fsanitize=thread calls these at each access.
#define RUNE_CALLBACKS(bytes)                                                                \
  extern "C" RUNE_UNCHECKED inline __attribute__((used)) void __tsan_read##bytes(void* p) {  \
    ::rune_gpu::rune_gpu_host->access(p, bytes, false);                                      \
  }                                                                                          \
  extern "C" RUNE_UNCHECKED inline __attribute__((used)) void __tsan_write##bytes(void* p) { \
    ::rune_gpu::rune_gpu_host->access(p, bytes, true);                                       \
  }                                                                                          \
  extern "C" RUNE_UNCHECKED inline                                                           \
      __attribute__((used)) void __tsan_unaligned_read##bytes(void* p) {                     \
    ::rune_gpu::rune_gpu_host->access(p, bytes, false);                                      \
  }                                                                                          \
  extern "C" RUNE_UNCHECKED inline                                                           \
      __attribute__((used)) void __tsan_unaligned_write##bytes(void* p) {                    \
    ::rune_gpu::rune_gpu_host->access(p, bytes, true);                                       \
  }
RUNE_CALLBACKS(1)
RUNE_CALLBACKS(2)
RUNE_CALLBACKS(4)
RUNE_CALLBACKS(8)
RUNE_CALLBACKS(16)
#undef RUNE_CALLBACKS
extern "C" RUNE_UNCHECKED inline __attribute__((used)) void __tsan_init() {}
extern "C" RUNE_UNCHECKED inline __attribute__((used)) void* __tsan_memset(void* p, int byte,
                                                                           unsigned long bytes) {
  for (unsigned long i = 0; i < bytes; ++i) {
    ::rune_gpu::rune_gpu_host->access((char*)p + i, 1, true);
    ((volatile char*)p)[i] = (char)byte;
  }
  return p;
}
extern "C" RUNE_UNCHECKED inline __attribute__((used)) void* __tsan_memcpy(void* to,
                                                                           const void* from,
                                                                           unsigned long bytes) {
  for (unsigned long i = 0; i < bytes; ++i) {
    ::rune_gpu::rune_gpu_host->access((const char*)from + i, 1, false);
    ::rune_gpu::rune_gpu_host->access((char*)to + i, 1, true);
    ((volatile char*)to)[i] = ((const char*)from)[i];
  }
  return to;
}
