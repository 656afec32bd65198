#include "translator.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <stdexcept>

namespace rune::gpu_emulator {

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

std::string trim(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\n");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\n") - begin + 1);
}

Translation Translator::run() {
  while (at_ < in_.size()) {
    if (is_at("//")) {
      copy(in_.find('\n', at_));
    } else if (is_at("/*")) {
      const size_t end = in_.find("*/", at_);
      copy(end == std::string::npos ? end : end + 2);
    } else {
      step();
    }
  }
  Translation result{out_ + "\n", std::move(kernels_)};
  for (const std::string& entry : entries_) result.text += entry;
  return result;
}

void Translator::fail(const std::string& message) const {
  const auto end = in_.begin() + static_cast<long>(std::min(at_, in_.size()));
  throw std::runtime_error(file_ + ":" + std::to_string(1 + std::count(in_.begin(), end, '\n')) +
                           ": error: " + message);
}

bool Translator::is_at(const char* text) const {
  return in_.compare(at_, std::strlen(text), text) == 0;
}

void Translator::copy(size_t end) {
  end = std::min(end, in_.size());
  out_.append(in_, at_, end - at_);
  at_ = end;
}

std::string Translator::next_word(size_t from) const {
  size_t end = from;
  while (end < in_.size() && is_word(in_[end])) ++end;
  return in_.substr(from, end - from);
}

bool Translator::threadgroup_variable() {
  size_t end = in_.find_first_of(";*&(),=[", at_);
  if (end != std::string::npos && in_[end] == '[') end = in_.find(';', end);
  if (end == std::string::npos || in_[end] != ';') return false;
  if (kernels_.empty() || depth() == 0) fail("a threadgroup variable must be in a kernel");
  const std::string declaration = in_.substr(at_, end - at_);
  size_t name_end = std::min(declaration.find('['), declaration.size());
  while (name_end > 0 && !is_word(declaration[name_end - 1])) --name_end;
  size_t name_begin = name_end;
  while (name_begin > 0 && is_word(declaration[name_begin - 1])) --name_begin;
  KernelSignature& kernel = kernels_.back();
  const std::string section = "RUNE_THREADGROUP(\"tg_" + kernel.name + "\")";
  out_ += section + " RUNE_GAP(" + std::to_string(kernel.threadgroup_variables++) + ") " + section;
  copy(end + 1);
  out_ += " RUNE_DECLARE(" + declaration.substr(name_begin, name_end - name_begin) + ")";
  return true;
}

// Braces open in the output since the last kernel's parameters.
long Translator::depth() const {
  const auto begin = out_.begin() + static_cast<long>(body_);
  return std::count(begin, out_.end(), '{') - std::count(begin, out_.end(), '}');
}

Translator::List Translator::list(size_t open) const {
  List result{{""}, open + 1};
  for (int nesting = 1; result.end < in_.size(); ++result.end) {
    const char c = in_[result.end];
    nesting += (c == '(') - (c == ')');
    if (nesting == 0) break;
    if (c == ',' && nesting == 1)
      result.items.emplace_back();
    else
      result.items.back() += c;
  }
  ++result.end;
  for (std::string& item : result.items) item = trim(item);
  if (result.items.size() == 1 && result.items[0].empty()) result.items.clear();
  return result;
}

void Translator::begin_kernel(KernelSignature kernel, const std::string& arguments) {
  for (const KernelSignature& other : kernels_)
    if (other.name == kernel.name) fail("redefinition of kernel " + kernel.name);
  const std::string exported = "extern \"C\" __attribute__((visibility(\"default\"))) ";
  const std::string hidden = "[] __attribute__((weak, visibility(\"hidden\")));\n";
  const std::string section = "tg_" + kernel.name;
  entries_.push_back(exported + "RUNE_UNCHECKED void rune_entry_" + kernel.name +
                     "(char* const* buffers, const rune_gpu::Ids& ids) { " + kernel.name + "(" +
                     arguments + "); }\n" + "extern \"C\" char __start_" + section + hidden +
                     "extern \"C\" char __stop_" + section + hidden + exported +
                     "RUNE_UNCHECKED void rune_threadgroup_" + kernel.name +
                     "(char** range) { range[0] = __start_" + section + "; range[1] = __stop_" +
                     section + "; }\n");
  kernels_.push_back(std::move(kernel));
  body_ = out_.size();
}

}  // namespace rune::gpu_emulator
