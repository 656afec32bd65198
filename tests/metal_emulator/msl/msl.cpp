#include "msl.h"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>

namespace rune::msl_emulator {

using gpu_emulator::is_word;
using gpu_emulator::KernelSignature;
using gpu_emulator::Translation;
using gpu_emulator::trim;

namespace {

const std::set<std::string> kIds = {
    "threadgroup_position_in_grid", "thread_position_in_threadgroup", "thread_position_in_grid",
    "threads_per_threadgroup",      "threadgroups_per_grid",          "thread_index_in_threadgroup",
    "thread_index_in_simdgroup",    "simdgroup_index_in_threadgroup"};

// The calls in a text by the function that makes them. A word with a parenthesis behind it at the
// outermost level is the function that the next body is of.
std::map<std::string, std::set<std::string>> calls_of(const std::string& text) {
  std::map<std::string, std::set<std::string>> calls;
  std::string function;
  int depth = 0;
  for (size_t at = 0; at < text.size();) {
    if (text.compare(at, 2, "//") == 0) {
      at = std::min(text.find('\n', at), text.size());
    } else if (is_word(text[at])) {
      size_t end = at;
      while (end < text.size() && is_word(text[end])) ++end;
      const std::string word = text.substr(at, end - at);
      at = text.find_first_not_of(" \t\n", end);
      if (at == std::string::npos) break;
      if (text[at] != '(') continue;
      if (depth > 0)
        calls[function].insert(word);
      else
        function = word;
    } else {
      depth += (text[at] == '{') - (text[at] == '}');
      ++at;
    }
  }
  return calls;
}

// A function that comes back to itself, or "". Overloads count as one function.
std::string recursive_function(const std::string& text) {
  const auto calls = calls_of(text);
  for (const auto& [start, unused] : calls) {
    std::vector<std::string> open{start};
    std::set<std::string> seen;
    while (!open.empty()) {
      const auto called = calls.find(open.back());
      open.pop_back();
      if (called == calls.end()) continue;
      for (const std::string& next : called->second) {
        if (next == start) return start;
        if (seen.insert(next).second) open.push_back(next);
      }
    }
  }
  return "";
}

// Only the address space of threadgroup variables and Metal's pragmas are rewritten. Refuses
// recursion, an attribute that Metal lacks, a threadgroup variable outside a kernel, a parameter
// without an attribute, two parameters at one index.
class Translator : public gpu_emulator::Translator {
 public:
  explicit Translator(const std::string& text) : gpu_emulator::Translator(text, "kernel.metal") {
    const std::string recursive = recursive_function(text);
    if (text.find("#include <metal_stdlib>") == std::string::npos)
      fail("the text does not include <metal_stdlib>");
    if (!recursive.empty()) fail("function " + recursive + " is recursive");
  }

 private:
  void step() override {
    if (is_at("#pragma")) return pragma();
    if (is_at("[[kernel")) return kernel_attribute();
    if (!is_word(in_[at_])) return copy(at_ + 1);
    const std::string word = next_word(at_);
    if (word == "threadgroup") {  // goes in front of a pointer or reference
      at_ += word.size();
      threadgroup_variable();
      return;
    }
    if (word == "kernel") return kernel(0);
    if (!kernels_.empty() &&
        (word == "threadgroup_barrier" || word == "simdgroup_multiply_accumulate" ||
         word.find("simd_") != std::string::npos))
      kernels_.back().blocks = true;
    copy(at_ + word.size());
  }

  // Metal's pragmas for floating point are clang's under another name.
  void pragma() {
    static const std::string kMetal = "#pragma METAL fp contract",
                             kClang = "#pragma clang fp contract";
    if (is_at(kMetal.c_str())) {
      out_ += kClang;
      at_ += kMetal.size();
    }
    copy(in_.find('\n', at_));
  }

  // `[[kernel, max_total_threads_per_threadgroup(n)]]`, for which `kernel` is written.
  void kernel_attribute() {
    static const std::string kHead = "[[kernel, max_total_threads_per_threadgroup(";
    const size_t end = in_.find(")]]", at_);
    if (!is_at(kHead.c_str()) || end == std::string::npos)
      fail("unknown attribute " + in_.substr(at_, in_.find("]]", at_) + 2 - at_));
    const int threads = std::atoi(in_.c_str() + at_ + kHead.size());
    if (threads < 1 || threads > 1024)
      fail("max_total_threads_per_threadgroup(" + std::to_string(threads) + ")");
    at_ = end + 3;
    out_ += "kernel";
    kernel(static_cast<unsigned>(threads));
  }

  void kernel(unsigned max_threads) {
    const size_t open = in_.find('(', at_);
    if (open == std::string::npos) fail("a kernel without parameters");
    KernelSignature kernel;
    if (max_threads) kernel.max_threads = max_threads;
    const std::string head = trim(in_.substr(at_, open - at_));
    kernel.name = head.substr(head.find_last_of(" \t\n") + 1);
    const List parameters = list(open);
    std::string arguments;
    for (const std::string& parameter : parameters.items)
      arguments += (arguments.empty() ? "" : ", ") + argument(parameter, kernel);
    copy(parameters.end);
    begin_kernel(std::move(kernel), arguments);
  }

  // The argument of one parameter, `type name [[attribute]]`.
  std::string argument(const std::string& parameter, KernelSignature& kernel) const {
    const size_t open = parameter.find("[["), close = parameter.find("]]");
    if (open == std::string::npos || close == std::string::npos)
      fail("parameter `" + parameter + "` of kernel " + kernel.name + " has no attribute");
    const std::string attribute = trim(parameter.substr(open + 2, close - open - 2));
    std::string type = trim(parameter.substr(0, open));
    while (!type.empty() && is_word(type.back())) type.pop_back();
    type = trim(type);
    if (attribute.starts_with("buffer(") && attribute.ends_with(")")) {
      const int index = std::stoi(attribute.substr(7));
      if (index < 0 || index > 30)
        fail("buffer index " + std::to_string(index) + " is not from 0 to 30");
      for (const int other : kernel.buffers)
        if (other == index) fail("two parameters at buffer index " + std::to_string(index));
      kernel.buffers.push_back(index);
      const std::string address = "buffers[" + std::to_string(index) + "]";
      if (type.ends_with("*")) return "(" + type + ")" + address;
      if (type.ends_with("&")) return "*(" + type.substr(0, type.size() - 1) + "*)" + address;
      fail("parameter `" + parameter + "` is neither a pointer nor a reference");
    }
    if (!kIds.count(attribute)) fail("unknown attribute [[" + attribute + "]]");
    return "rune_msl::pick<" + type + ">(ids." + attribute + ")";
  }
};

// No excess precision, and products and sums are contracted to fused operations, as Apple's
// compiler does, unless `#pragma METAL fp contract(off)` comes before them.
constexpr const char* kFlags =
    "-ffp-contract=fast-honor-pragmas -Xclang -cl-single-precision-constant "
    "-Wno-unknown-attributes ";

}  // namespace

gpu_emulator::Language language(const std::string& include, int version) {
  return {"kernel.metal", kFlags + ("-D__METAL_VERSION__=" + std::to_string(version)), include,
          "metal_stdlib", [](const std::string& text) { return Translator(text).run(); }};
}

}  // namespace rune::msl_emulator
