// The CPU device: kernels are compiled from LLVM IR and run on all cores.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/device.h"

namespace rune::runtime {

// Machine code of a module: an entry point for each kernel, valid while keep_alive exists.
//   void entry(void* const* buffers, const int64_t* vars, int64_t begin, int64_t end)
// It runs workgroups `begin` to `end` - 1, one after the other. If the kernel has scratch memory,
// two pointers follow its arguments in `buffers`: one to the scratch memory, and one to the number
// (int64_t) of the workgroup of this launch that has used it before, or -1.
struct CompiledModule {
  std::vector<void*> entry_points;
  std::shared_ptr<void> keep_alive;
};

// Compiles a module of LLVM IR text to machine code and finds the named functions in it. The Python
// package sets the hook (llvmlite). It throws UserError(Runtime) for a module that LLVM refuses.
using CompileHook =
    std::function<CompiledModule(const std::string& text, const std::vector<std::string>& names)>;
void set_compile_hook(CompileHook hook);

// CPU device number `ordinal`. All CPU devices share cores and memory but have different names.
// A source with a text is a module of LLVM IR. A source without a text is a further kernel of the
// module before it. A launch returns when the kernel has run. parallel_for divides the grid's
// workgroups among the cores: a call of the entry point runs those from `begin` to `end`. `vars`
// may be null if the kernel has none.
std::shared_ptr<Device> cpu_device(int ordinal = 0);

}  // namespace rune::runtime
