// Compiles Metal source text to programs.
#pragma once

#include <list>
#include <map>
#include <mutex>
#include <string_view>
#include <unordered_map>

#include "metal/allocator.h"
#include "metal/archive.h"
#include "metal/queue.h"
#include "runtime/device.h"

namespace rune::metal {

// Compiles with safe math: there is no reassociation, and NaN and infinities are kept. Metal
// compiles the pipelines of a library at the same time. The 32 libraries used last are kept with
// their pipelines, by source text, so that a text is not compiled again. Pipelines are also kept on
// disk. A program keeps its own pipeline alive. Thread-safe.
class Compiler : public runtime::Compiler {
 public:
  // Takes the capabilities for which kernels are lowered and estimated.
  Compiler(id<MTLDevice> device, Queue& queue, Allocator& allocator,
           const Capabilities& capabilities);

  // A source with an empty text is a kernel of the preceding text. Throws UserError(Runtime) with
  // the compiler's messages and the kernel's name.
  std::vector<std::shared_ptr<runtime::Program>> compile(
      std::span<const runtime::KernelSource> sources) override;

 private:
  struct Library {
    std::shared_ptr<const std::string> text;
    id<MTLLibrary> library;
    Archive archive;
    std::map<std::string, id<MTLComputePipelineState>> pipelines;  // by function
  };
  Library& library_of(const std::string& text, const std::string& kernel);
  void make_pipelines(Library& library, std::span<const runtime::KernelSource> sources);

  const id<MTLDevice> device_;
  Queue& queue_;
  Allocator& allocator_;
  const int num_cores_, simd_width_;
  std::mutex mutex_;
  std::list<Library> libraries_;  // the library used last comes first
  std::unordered_map<std::string_view, std::list<Library>::iterator> by_text_;
};

}  // namespace rune::metal
