#include "translate.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <stdexcept>

namespace rune::msl_emulator {

namespace {

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

const std::set<std::string> kIds = {
    "threadgroup_position_in_grid", "thread_position_in_threadgroup", "thread_position_in_grid",
    "threads_per_threadgroup",      "threadgroups_per_grid",          "thread_index_in_threadgroup",
    "thread_index_in_simdgroup",    "simdgroup_index_in_threadgroup"};

std::string trim(const std::string& s) {
  const size_t begin = s.find_first_not_of(" \t\n");
  return begin == std::string::npos ? "" : s.substr(begin, s.find_last_not_of(" \t\n") - begin + 1);
}

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

class Translator {
 public:
  explicit Translator(const std::string& text) : in_(text) {}

  Translation run() {
    const std::string recursive = recursive_function(in_);
    if (!recursive.empty()) fail("function " + recursive + " is recursive");
    while (at_ < in_.size()) step();
    Translation result{out_ + "\n", std::move(kernels_)};
    for (const std::string& entry : entries_) result.text += entry;
    return result;
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    const auto line =
        1 +
        std::count(in_.begin(), in_.begin() + static_cast<long>(std::min(at_, in_.size())), '\n');
    throw std::runtime_error("kernel.metal:" + std::to_string(line) + ": error: " + message);
  }

  void step() {
    if (in_.compare(at_, 2, "//") == 0) return copy(in_.find('\n', at_));
    if (in_.compare(at_, 2, "/*") == 0) {
      const size_t end = in_.find("*/", at_);
      return copy(end == std::string::npos ? end : end + 2);
    }
    if (in_.compare(at_, 7, "#pragma") == 0) return pragma();
    if (in_.compare(at_, 8, "[[kernel") == 0) return kernel_attribute();
    if (!is_word(in_[at_])) return copy(at_ + 1);
    const std::string word = next_word(at_);
    if (word == "threadgroup") return threadgroup();
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
    if (in_.compare(at_, kMetal.size(), kMetal) == 0) {
      out_ += kClang;
      at_ += kMetal.size();
    }
    copy(in_.find('\n', at_));
  }

  void copy(size_t end) {
    end = std::min(end, in_.size());
    out_.append(in_, at_, end - at_);
    at_ = end;
  }

  std::string next_word(size_t from) const {
    size_t end = from;
    while (end < in_.size() && is_word(in_[end])) ++end;
    return in_.substr(from, end - from);
  }

  // A declaration `threadgroup T name[n];` becomes a static variable in the kernel's own section,
  // whose extent is told to the runner; in front of a pointer or reference the word goes.
  void threadgroup() {
    at_ += std::string("threadgroup").size();
    size_t end = in_.find_first_of(";*&(),=[", at_);
    if (end != std::string::npos && in_[end] == '[') end = in_.find(';', end);
    if (end == std::string::npos || in_[end] != ';') return;
    if (kernels_.empty() || depth() == 0) fail("a threadgroup variable must be in a kernel");
    const std::string declaration = in_.substr(at_, end - at_);
    size_t name_end = std::min(declaration.find('['), declaration.size());
    while (name_end > 0 && !is_word(declaration[name_end - 1])) --name_end;
    size_t name_begin = name_end;
    while (name_begin > 0 && is_word(declaration[name_begin - 1])) --name_begin;
    KernelSignature& kernel = kernels_.back();
    const std::string section = "RUNE_THREADGROUP(\"tg_" + kernel.name + "\")";
    out_ +=
        section + " RUNE_GAP(" + std::to_string(kernel.threadgroup_variables++) + ") " + section;
    copy(end + 1);
    out_ += " RUNE_DECLARE(" + declaration.substr(name_begin, name_end - name_begin) + ")";
  }

  // Braces open in the output since the last kernel's parameters.
  long depth() const {
    const auto begin = out_.begin() + static_cast<long>(body_);
    return std::count(begin, out_.end(), '{') - std::count(begin, out_.end(), '}');
  }

  // `[[kernel, max_total_threads_per_threadgroup(n)]]`, for which `kernel` is written.
  void kernel_attribute() {
    static const std::string kHead = "[[kernel, max_total_threads_per_threadgroup(";
    const size_t end = in_.find(")]]", at_);
    if (in_.compare(at_, kHead.size(), kHead) != 0 || end == std::string::npos)
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
    for (const KernelSignature& other : kernels_)
      if (other.name == kernel.name) fail("redefinition of kernel " + kernel.name);
    size_t close = open + 1;
    std::vector<std::string> parameters(1);
    for (int nesting = 1; close < in_.size(); ++close) {
      const char c = in_[close];
      nesting += (c == '(') - (c == ')');
      if (nesting == 0) break;
      if (c == ',' && nesting == 1)
        parameters.emplace_back();
      else
        parameters.back() += c;
    }
    std::string arguments;
    for (const std::string& parameter : parameters)
      if (!trim(parameter).empty())
        arguments += (arguments.empty() ? "" : ", ") + argument(trim(parameter), kernel);
    std::string& entry = entries_.emplace_back();
    entry =
        "extern \"C\" __attribute__((visibility(\"default\"))) RUNE_UNCHECKED void rune_entry_" +
        kernel.name + "(char* const* buffers, const rune_msl::Ids& ids) { " + kernel.name + "(" +
        arguments + "); }\n";
    const std::string section = "tg_" + kernel.name;
    entry += "extern \"C\" char __start_" + section +
             "[] __attribute__((weak, visibility(\"hidden\")));\n" + "extern \"C\" char __stop_" +
             section + "[] __attribute__((weak, visibility(\"hidden\")));\n" +
             "extern \"C\" __attribute__((visibility(\"default\"))) RUNE_UNCHECKED void "
             "rune_threadgroup_" +
             kernel.name + "(char** range) { range[0] = __start_" + section +
             "; range[1] = __stop_" + section + "; }\n";
    kernels_.push_back(std::move(kernel));
    copy(close + 1);
    body_ = out_.size();
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

  const std::string& in_;
  size_t at_ = 0, body_ = 0;
  std::string out_;
  std::vector<std::string> entries_;
  std::vector<KernelSignature> kernels_;
};

}  // namespace

Translation translate(const std::string& msl) {
  return Translator(msl).run();
}

}  // namespace rune::msl_emulator
