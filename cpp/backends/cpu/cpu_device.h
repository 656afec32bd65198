// The CPU: kernels compiled from LLVM IR, run over the cores.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/device.h"

namespace rune::runtime {

// LLVM IR text, and the functions of it that are called.
struct Module {
  std::string text;
  std::vector<std::string> names;
};

// Machine code of a module: one entry point a name, alive as long as keep_alive.
//   void entry(void* const* buffers, const int64_t* vars, int64_t begin, int64_t end)
struct CompiledModule {
  std::vector<void*> entry_points;
  std::shared_ptr<void> keep_alive;
};

// Compiles modules to machine code, each in a thread of its own. The Python package sets it
// (llvmlite); the hook throws UserError(Runtime) for a module that LLVM refuses.
using CompileHook = std::function<std::vector<CompiledModule>(const std::vector<Module>& modules)>;
void set_compile_hook(CompileHook hook);

// CPU device number `ordinal`: all have the same cores and memory, and names of their own. Its
// compiler takes the kernels of a program as modules: a source's text is that of a module, or empty
// if its kernel is in the module of the source before. Launches have run when they return. The
// grid's groups, x fastest, are the entry point's tasks, dealt to cores by parallel_for; `vars` may
// be null if there are none.
std::shared_ptr<Device> cpu_device(int ordinal = 0);

}  // namespace rune::runtime
