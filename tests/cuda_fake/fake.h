// A driver, an NVRTC and a cuBLAS for tests on machines without a card: the memory of the device is
// the host's, code is its text, a launch computes nothing unless `emulate` is set, and products are
// computed as cuBLAS's manual says. It finds misuse, counts, and fails on demand. With `emulate`,
// clang compiles the text, and launches run on tests/gpu_emulator, which checks what they do. One
// library stands for all three (RUNE_JIT_CUDA_DRIVER, RUNE_JIT_NVRTC and RUNE_JIT_CUBLAS name it).
//
// rune_fake_set(name, value) sets a number below; RUNE_FAKE_<NAME> in the environment sets what it
// begins as. rune_fake_get(name) reads it, or a count. rune_fake_misuse() is the first misuse
// found.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "gpu_emulator/library.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace rune::cuda_fake {

using Address = unsigned long long;

constexpr int kInvalidValue = 1, kOutOfMemory = 2, kInvalidContext = 201, kInvalidImage = 200,
              kInvalidHandle = 400, kNotFound = 500, kIllegalAddress = 700;

struct Function {
  std::string name;
  int num_pointers = 0;
  size_t vars_bytes = 0;                         // of the structure behind them
  bool waits = false;                            // for the end of the kernels before
  const gpu_emulator::Kernel* kernel = nullptr;  // if launches compute
};
struct Module {
  std::shared_ptr<gpu_emulator::Library> library;
  std::map<std::string, Function> functions;
};

std::map<std::string, long>& numbers();

struct State {
  std::recursive_mutex mutex;
  std::map<Address, size_t> live;
  std::map<Address, size_t> pinned;
  std::set<Address> freed;
  std::set<Module*> modules;
  std::set<Function*> functions;
  std::map<std::string, long> counts;
  long used_bytes = 0;
  std::string misuse;
  std::string emulator_error;  // the last one
  std::vector<void*> contexts;

  int refuse(int result, const std::string& what) {
    if (misuse.empty()) misuse = what;
    return result;
  }
};

State& state();

extern thread_local std::vector<void*> current;  // contexts

// What every call that needs the context begins with.
struct Call {
  explicit Call(const char* name) : lock(state().mutex) {
    ++state().counts[name];
    result = static_cast<int>(numbers()["error"]);
    if (current.empty())
      result = state().refuse(kInvalidContext, std::string(name) + " without a context");
  }
  std::lock_guard<std::recursive_mutex> lock;
  int result = 0;
};

// CUDA text as the host executes it. Throws std::runtime_error with clang's messages.
std::shared_ptr<gpu_emulator::Library> compile(const std::string& text);

}  // namespace rune::cuda_fake

// Of fake.cpp; launches of graphs (graphs.cpp) call them.
EXPORTED int cuMemcpyDtoDAsync_v2(rune::cuda_fake::Address to, rune::cuda_fake::Address from,
                                  size_t bytes, void* stream);
EXPORTED int cuLaunchKernel(rune::cuda_fake::Function* function, unsigned grid, unsigned, unsigned,
                            unsigned block, unsigned, unsigned, unsigned shared_bytes, void* stream,
                            void** parameters, void** extra);
