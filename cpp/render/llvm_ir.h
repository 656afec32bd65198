// Renders kernels as LLVM IR text: explicit vector code in SSA form, meant for code generation
// without optimisation passes. The exception are kernels that read what they have written, as those
// of loops do. LLVM's passes should improve them, so their functions have the attribute
// "rune-optimize".
//
// A kernel becomes `void @name(ptr %buffers, ptr %vars, i64 %begin, i64 %end)`, where the name is
// identifier(kernel.name). `buffers` is an array of pointers, in the order of the Define_Global
// indices. If the kernel has Locals (Kernel::local_offsets; small ones are on the stack), one more
// pointer follows, to 64-byte aligned memory for them. Calls that run at the same time need
// separate memory. `vars` is an array of i64: the symbolic variables in the order of their first
// definitions. The function runs the workgroups begin <= t < end of the grid. They may run in any
// order and on any threads. The IR names no CPU and no triple. It may depend on `register_bytes`,
// the size of the CPU's vector registers, and is right for CPUs whose registers are at least as
// large.
//
// What callers guarantee:
//  - a workgroup has one thread (InternalError otherwise);
//  - operations that the CPU's Capabilities do not list as native are decomposed (InternalError
//    otherwise);
//  - integer Div and Fmod have no zero divisor and no INT_MIN / -1;
//  - shifts stay within the width;
//  - nontemporal vector stores are aligned to the vector's size;
//  - if a kernel loads memory through a read-only global and writes it through another, it reads
//    each element before it writes it, and never after.
// Bool is i1 in registers and a byte in memory. float16 and bfloat16 are held as their bits, and
// arithmetic on them widens to float32.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lower/instr.h"

namespace rune::render {

// Every CPU with masked vector loads has registers of this size.
constexpr int kLeastRegisterBytes = 32;

// A module with one kernel. Throws UserError(Unsupported) for Custom and Wmma.
std::string render_llvm(const lower::Kernel& kernel);

// One module with all kernels. Throws InternalError if two kernels have the same symbol.
std::string render_llvm_module(std::span<const lower::Kernel> kernels,
                               int register_bytes = kLeastRegisterBytes);

// One text for each kernel: the module that begins with it, or an empty text if it is in the module
// of the kernel before it. LLVM's passes should improve either all kernels of a module or none.
std::vector<std::string> render_llvm_modules(std::span<const lower::Kernel> kernels,
                                             int register_bytes = kLeastRegisterBytes);

}  // namespace rune::render
