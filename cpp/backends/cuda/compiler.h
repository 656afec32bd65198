// Compiles CUDA C++ text to programs.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "backends/cuda/context.h"
#include "backends/cuda/cublas.h"
#include "runtime/device.h"

namespace rune::cuda {

// Compiles by NVRTC for the device's architecture, with IEEE arithmetic and no contraction. The
// code is kept on disk by text, options and NVRTC's version. Texts whose programs are alive are
// compiled once. Thread-safe.
class Compiler : public runtime::Compiler {
 public:
  Compiler(Context& context, int architecture)
      : context_(context), architecture_(architecture), cublas_(context) {}

  // A source with an empty text is a kernel of the preceding text. Products become cuBLAS's, if
  // there is one, and their texts are not compiled then. Throws UserError(Runtime) with
  // the compiler's messages, or ThreadLimitError.
  std::vector<std::shared_ptr<runtime::Program>> compile(
      std::span<const runtime::KernelSource> sources) override;

  // Of copies, and of programs that this compiler made of texts; null if CUDA graphs are not to be
  // used.
  std::unique_ptr<runtime::Sequence> sequence(std::span<const runtime::SequencePart> parts);

 private:
  class Module;
  std::shared_ptr<const Module> module_of(const std::string& text);

  Context& context_;
  const int architecture_;
  Cublas cublas_;
  std::mutex mutex_;
  std::unordered_map<std::string, std::weak_ptr<const Module>> modules_;  // by text
};

}  // namespace rune::cuda
