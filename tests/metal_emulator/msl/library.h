// MSL text compiled by clang to machine code of this computer.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "translate.h"

namespace rune::msl_emulator {

// The layout of rune_msl::Ids in include/metal_stdlib.
struct alignas(16) Id {
  unsigned x = 0, y = 0, z = 0, unused = 0;
};
struct Ids {
  Id threadgroup_position_in_grid, thread_position_in_threadgroup, thread_position_in_grid;
  Id threads_per_threadgroup, threadgroups_per_grid;
  Id thread_index_in_threadgroup, thread_index_in_simdgroup, simdgroup_index_in_threadgroup;
};

struct Kernel {
  KernelSignature signature;
  void (*entry)(char* const* buffers, const Ids& ids) = nullptr;
  char* threadgroup_begin = nullptr;  // its static threadgroup memory
  char* threadgroup_end = nullptr;

  // What its variables take, each of which begins at a multiple of 16 bytes, without the gaps
  // between them.
  size_t threadgroup_bytes() const {
    return static_cast<size_t>(threadgroup_end - threadgroup_begin) -
           kThreadgroupGap * static_cast<size_t>(signature.threadgroup_variables);
  }
};

class Library {
 public:
  // Compiles for a version of the language, which __METAL_VERSION__ names. Products and sums are
  // contracted to fused operations, as Apple's compiler does, unless `#pragma METAL fp
  // contract(off)` comes before them. Throws std::runtime_error with the compiler's messages.
  // Machine code is kept in `cache`, a folder, by a hash of the text, the flags and the shim
  // `include`/metal_stdlib.
  static std::shared_ptr<Library> compile(const std::string& msl, const std::string& include,
                                          const std::string& cache, int version = 320);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  const std::vector<Kernel>& kernels() const { return kernels_; }
  const Kernel* find(const std::string& name) const;

 private:
  Library() = default;
  void* handle_ = nullptr;
  std::vector<Kernel> kernels_;
};

}  // namespace rune::msl_emulator
