// Compiles CUDA C++ text to programs.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "backends/cuda/context.h"
#include "backends/cuda/cublas.h"
#include "backends/cuda/sequence.h"
#include "runtime/device.h"

namespace rune::cuda {

// Compiles with NVRTC for the device's architecture, with IEEE arithmetic and without contraction.
// The code is kept on disk under a hash of the text, the options and NVRTC's version. A text is not
// compiled again while a program made from it exists. Thread-safe.
class Compiler : public runtime::Compiler {
 public:
  Compiler(Context& context, int architecture)
      : context_(context), architecture_(architecture), cublas_(context) {}

  // A source with an empty text is a further kernel of the text before it. A source with a product
  // becomes a call of cuBLAS if cuBLAS is installed; its text is then not compiled. Throws
  // UserError(Runtime) with the compiler's messages, or ThreadLimitError.
  std::vector<std::shared_ptr<runtime::Program>> compile(
      std::span<const runtime::KernelSource> sources) override;

  // Returns a sequence of copies and of programs that this compiler made from texts. Returns null
  // if CUDA graphs are turned off (RUNE_JIT_CUDA_GRAPHS).
  std::unique_ptr<runtime::Sequence> sequence(std::span<const runtime::SequencePart> parts);

 private:
  class Module;
  std::shared_ptr<const Module> module_of(const std::string& text);
  std::vector<GraphStep> steps_of(std::span<const runtime::SequencePart> parts, bool& has_loops);
  std::shared_ptr<const LoopKernels> loop_kernels();

  Context& context_;
  const int architecture_;
  Cublas cublas_;
  std::mutex mutex_;
  std::unordered_map<std::string, std::weak_ptr<const Module>> modules_;  // by text
  std::shared_ptr<const LoopKernels> loop_kernels_;
};

}  // namespace rune::cuda
