// Text in a GPU's language compiled by clang to machine code of this computer.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gpu_emulator/include/gpu_host.h"
#include "gpu_emulator/translator.h"

namespace rune::gpu_emulator {

struct Language {
  std::string file;     // the text's name in messages
  std::string flags;    // of clang, beside those of all languages
  std::string include;  // the folder of its headers
  std::string header;   // the one that comes before every text
  std::function<Translation(const std::string& text)> translate;
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
  // Throws std::runtime_error with the compiler's messages. Machine code is kept in `cache`, a
  // folder, by a hash of the text, the flags and the headers.
  static std::shared_ptr<Library> compile(const Language& language, const std::string& text,
                                          const std::string& cache);
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

}  // namespace rune::gpu_emulator
