#include "emulation.h"

#include <cstdlib>

namespace rune::cuda_emulator {

using gpu_emulator::is_word;
using gpu_emulator::KernelSignature;

namespace {

class Translator : public gpu_emulator::Translator {
 public:
  explicit Translator(const std::string& text) : gpu_emulator::Translator(text, "kernel.cu") {}

 private:
  void step() override {
    if (in_[at_] == '"') return copy(in_.find('"', at_ + 1) + 1);
    if (!is_word(in_[at_])) return copy(at_ + 1);
    const std::string word = next_word(at_);
    if (word == "__shared__") {
      at_ += word.size();
      // All variables of blocks begin at a multiple of 16 bytes.
      if (const size_t align = in_.find("__align__(16)", at_); align == at_ + 1) at_ = align + 13;
      if (!threadgroup_variable()) fail("__shared__ without a declaration");
      return;
    }
    if (word == "__global__") return kernel();
    if (word == "asm") return assembly();
    // Helpers that wait have one of these in their names.
    for (const char* part : {"_sync", "rune_simd_", "rune_shuffle", "rune_matmul_"})
      if (!kernels_.empty() && word.find(part) != std::string::npos) kernels_.back().blocks = true;
    copy(at_ + word.size());
  }

  // `__global__ void __launch_bounds__(k) name(parameters)`. The parameters are buffers in this
  // order; one that is no pointer lies in its buffer.
  void kernel() {
    static const std::string kBounds = "__launch_bounds__(";
    const size_t bounds = in_.find(kBounds, at_);
    if (bounds == std::string::npos) fail("a kernel without __launch_bounds__");
    KernelSignature kernel;
    kernel.max_threads = static_cast<unsigned>(std::atoi(in_.c_str() + bounds + kBounds.size()));
    const size_t open = in_.find('(', in_.find(')', bounds));
    if (open == std::string::npos) fail("a kernel without parameters");
    size_t begin = open;
    while (is_word(in_[begin - 1])) --begin;
    kernel.name = in_.substr(begin, open - begin);
    const List parameters = list(open);
    std::string arguments;
    for (const std::string& parameter : parameters.items) {
      const std::string buffer = "buffers[" + std::to_string(kernel.buffers.size()) + "]";
      kernel.buffers.push_back(static_cast<int>(kernel.buffers.size()));
      size_t name = parameter.size();
      while (name > 0 && is_word(parameter[name - 1])) --name;
      const std::string type = gpu_emulator::trim(parameter.substr(0, name));
      const bool is_pointer = type.find('*') != std::string::npos;
      arguments += is_pointer ? ", (" + type + ")" + buffer : ", *(" + type + "*)" + buffer;
    }
    copy(open + 1);
    out_ += parameters.items.empty() ? "rune_gpu::Ids rune_ids" : "rune_gpu::Ids rune_ids, ";
    copy(parameters.end);
    begin_kernel(std::move(kernel), "ids" + arguments);
  }

  // The sections of `asm volatile("..." : "=f"(output) : "r"(input))` become
  // `rune_ptx::instruction(output, input)`.
  void assembly() {
    const size_t begin = at_, open = in_.find('(', at_);
    std::vector<std::string> sections(1);
    size_t end = open + 1;
    for (int nesting = 1; end < in_.size(); ++end) {
      const char c = in_[end];
      if (c == '"') {
        const size_t close = in_.find('"', end + 1);
        // Operands' constraints are left out.
        if (sections.size() == 1) sections[0] += in_.substr(end + 1, close - end - 1);
        end = close;
        continue;
      }
      nesting += (c == '(') - (c == ')');
      if (nesting == 0) break;
      if (c == ':' && nesting == 1)
        sections.emplace_back();
      else if (sections.size() > 1)
        sections.back() += c;
    }
    const size_t stop = sections[0].find(';');
    if (stop == std::string::npos ||
        sections[0].find_first_not_of(" \n", stop + 1) != std::string::npos)
      fail("inline assembly that is not one instruction: " + sections[0]);
    std::string name = sections[0].substr(0, sections[0].find_first_of(" ;"));
    for (char& c : name)
      if (!is_word(c)) c = '_';
    std::string operands;
    for (size_t i = 1; i < sections.size() && i < 3; ++i) {
      const std::string section = gpu_emulator::trim(sections[i]);
      operands += (operands.empty() || section.empty() ? "" : ", ") + section;
    }
    out_ += "rune_ptx::" + name + "(" + operands + ")";
    for (size_t i = begin; i < end; ++i)
      if (in_[i] == '\n') out_ += '\n';  // each line keeps its number
    at_ = end + 1;
  }
};

// Products and sums stay apart (--fmad=false).
constexpr const char* kFlags = "-ffp-contract=off";

}  // namespace

gpu_emulator::Language language() {
  return {"kernel.cu", kFlags, RUNE_CUDA_INCLUDE, "cuda_builtins.h",
          [](const std::string& text) { return Translator(text).run(); }};
}

}  // namespace rune::cuda_emulator
