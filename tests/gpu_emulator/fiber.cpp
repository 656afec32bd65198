#include "gpu_emulator/fiber.h"

#include <cstdint>

#if defined(__x86_64__)
// Saves the registers that a callee keeps, by the System V calling convention. The kernel's system
// calls, which swapcontext makes for the signal mask, would cost more than most threads' work.
asm(R"(
.text
.globl rune_fiber_switch
.hidden rune_fiber_switch
.type rune_fiber_switch, @function
rune_fiber_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size rune_fiber_switch, .-rune_fiber_switch
)");
extern "C" void rune_fiber_switch(void** from, void* to);
#endif

namespace rune::gpu_emulator {

#if defined(__x86_64__)

void Fiber::prepare(char* stack, size_t bytes, void (*function)()) {
  // At its first instruction a function finds the stack 8 bytes off a multiple of 16.
  auto* top =
      reinterpret_cast<void**>((reinterpret_cast<uintptr_t>(stack) + bytes) & ~uintptr_t{15});
  *--top = nullptr;
  *--top = reinterpret_cast<void*>(function);
  for (int i = 0; i < 6; ++i) *--top = nullptr;
  stack_pointer_ = top;
}

void Fiber::switch_to(Fiber& from, Fiber& to) {
  rune_fiber_switch(&from.stack_pointer_, to.stack_pointer_);
}

#else

void Fiber::prepare(char* stack, size_t bytes, void (*function)()) {
  getcontext(&context_);
  context_.uc_stack.ss_sp = stack;
  context_.uc_stack.ss_size = bytes;
  context_.uc_link = nullptr;
  makecontext(&context_, function, 0);
}

void Fiber::switch_to(Fiber& from, Fiber& to) {
  swapcontext(&from.context_, &to.context_);
}

#endif

}  // namespace rune::gpu_emulator
