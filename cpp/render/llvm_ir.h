// Renders kernels as LLVM IR text: explicit vector code in SSA form, meant for code generation
// without any IR optimisation pass. Kernels that read what they have written, as those of loops do,
// are the exception: the functions of a module that LLVM's passes should improve have the attribute
// "rune-optimize".
//
// A kernel becomes `void @name(ptr %buffers, ptr %vars, i64 %begin, i64 %end)`, where the name is
// identifier(kernel.name). `buffers` is an array of pointers by Define_Global index and, after
// them, one to the 64-byte aligned memory for the kernel's Locals if it has any
// (Kernel::local_offsets; small ones lie on the stack); calls that run at once need separate ones.
// `vars` is an array of i64 by first definition of each symbolic variable. The function runs
// workgroups begin <= t < end of the grid. They may run in any order and on any threads; the IR
// names no CPU and no triple.
//
// What callers guarantee:
//  - a workgroup has one thread (InternalError otherwise);
//  - operations that the CPU's Capabilities do not list as native are decomposed (InternalError);
//    integer Div and Fmod see no zero divisor and no INT_MIN / -1, shifts stay within the width;
//  - nontemporal vector stores are aligned to the vector's size;
//  - memory that a kernel loads through a read-only global and writes through another is read
//    before it is written, and never after, element by element.
// Bool is i1 in registers and a byte in memory. float16 and bfloat16 are held as their bits;
// arithmetic on them widens to float32.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lower/instr.h"

namespace rune::render {

// A module of one kernel. Throws UserError(Unsupported) for Custom and Wmma.
std::string render_llvm(const lower::Kernel& kernel);

// One module with all kernels. Throws InternalError if two kernels have one symbol.
std::string render_llvm_module(std::span<const lower::Kernel> kernels);

// By kernel, the module that begins with it, or nothing if it is in the module of the kernel before
// it. A module has kernels that LLVM's passes should improve, or none of them.
std::vector<std::string> render_llvm_modules(std::span<const lower::Kernel> kernels);

}  // namespace rune::render
