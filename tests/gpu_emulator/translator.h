// From the text of a GPU's language to the C++ that clang compiles for the host.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace rune::gpu_emulator {

struct KernelSignature {
  std::string name;
  std::vector<int> buffers;  // indices of the buffers of a launch, in the order of the parameters
  int threadgroup_variables = 0;
  unsigned max_threads = 1024;  // of a threadgroup, as the text declares it
  bool blocks = false;          // the text waits for other threads somewhere
};

// Bytes in front of each threadgroup variable that belong to none.
constexpr size_t kThreadgroupGap = 64;

struct Translation {
  std::string text;  // line n is line n of the original; entry points follow
  std::vector<KernelSignature> kernels;
};

// What the languages have in common: comments, variables of threadgroups, kernels' entry points. A
// language derives from it.
class Translator {
 public:
  // `file` is the text's name in messages.
  Translator(const std::string& text, std::string file) : in_(text), file_(std::move(file)) {}
  virtual ~Translator() = default;

  // Throws std::runtime_error for what the language's compiler would refuse and clang does not see.
  Translation run();

 protected:
  // Translates what begins at `at_`, which is no comment: copies it or writes something else, and
  // moves `at_` behind it.
  virtual void step() = 0;

  [[noreturn]] void fail(const std::string& message) const;
  bool is_at(const char* text) const;
  void copy(size_t end);
  std::string next_word(size_t from) const;
  // Behind the word for threadgroup variables: a declaration `T name[n];` becomes a static variable
  // in the kernel's own section, whose extent is told to the runner. False, with nothing done, if
  // no declaration follows.
  bool threadgroup_variable();
  // What stands in the parentheses at `open`, by commas; and the place behind them.
  struct List {
    std::vector<std::string> items;
    size_t end;
  };
  List list(size_t open) const;
  // Begins a kernel, whose body follows at `at_`: the entry point calls it with arguments, which
  // are expressions of `char* const* buffers` and `const rune_gpu::Ids& ids`.
  void begin_kernel(KernelSignature kernel, const std::string& arguments);

  const std::string& in_;
  size_t at_ = 0;
  std::string out_;
  std::vector<KernelSignature> kernels_;

 private:
  long depth() const;

  const std::string file_;
  size_t body_ = 0;
  std::vector<std::string> entries_;
};

bool is_word(char c);
std::string trim(const std::string& text);

}  // namespace rune::gpu_emulator
