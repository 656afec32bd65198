// The CPU device: kernels are compiled from LLVM IR and run on all cores.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/device.h"

namespace rune::runtime {

// Machine code of a module: an entry point for each kernel, valid while keep_alive lives.
//   void entry(void* const* buffers, const int64_t* vars, int64_t begin, int64_t end)
struct CompiledModule {
  std::vector<void*> entry_points;
  std::shared_ptr<void> keep_alive;
};

// Compiles a module of LLVM IR text to machine code and finds the named functions in it. The Python
// package sets the hook (llvmlite). It throws UserError(Runtime) for a module that LLVM refuses.
using CompileHook =
    std::function<CompiledModule(const std::string& text, const std::vector<std::string>& names)>;
void set_compile_hook(CompileHook hook);

// CPU device number `ordinal`. All CPU devices have the same cores and memory but different names.
// A source with a text begins a module; those without one are kernels of the module before them.
// Launches have run when they return. parallel_for distributes the grid's groups to the cores as
// the tasks of the entry point. `vars` may be null if there are none.
std::shared_ptr<Device> cpu_device(int ordinal = 0);

}  // namespace rune::runtime
