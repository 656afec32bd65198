// Threads of control that the runner switches between by itself.
#pragma once

#include <cstddef>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace rune::gpu_emulator {

class Fiber {
 public:
  Fiber() = default;
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // To start at `function` on a stack; the function must not return.
  void prepare(char* stack, size_t bytes, void (*function)());
  // Leaves `from`, which is running, for `to`.
  static void switch_to(Fiber& from, Fiber& to);

 private:
#if defined(__x86_64__)
  void* stack_pointer_ = nullptr;
#else
  ucontext_t context_;
#endif
};

}  // namespace rune::gpu_emulator
