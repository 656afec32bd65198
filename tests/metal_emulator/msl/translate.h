// From MSL text to the C++ that clang compiles against include/metal_stdlib.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace rune::msl_emulator {

struct KernelSignature {
  std::string name;
  std::vector<int> buffers;  // indices of [[buffer(i)]], in the order of the parameters
  int threadgroup_variables = 0;
  unsigned max_threads = 1024;  // of a threadgroup: max_total_threads_per_threadgroup
  bool blocks = false;          // the text waits for other threads somewhere
};

// Bytes in front of each threadgroup variable that belong to none.
constexpr size_t kThreadgroupGap = 64;

struct Translation {
  std::string text;  // line n is line n of the MSL text; entry points follow
  std::vector<KernelSignature> kernels;
};

// Only the address space of threadgroup variables and Metal's pragmas are rewritten. Throws
// std::runtime_error for what Metal's compiler would refuse: recursion, an attribute that it lacks,
// a threadgroup variable outside a kernel, a parameter without an attribute, two parameters at one
// index.
Translation translate(const std::string& msl);

}  // namespace rune::msl_emulator
