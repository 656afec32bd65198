#include "gpu_emulator/library.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "gpu_emulator/runner.h"

namespace rune::gpu_emulator {

namespace fs = std::filesystem;

namespace {

// No excess precision: the float contract of the text. Instrumentation for data races calls back at
// each access of memory that other threads may see; its own runtime is not linked.
constexpr const char* kFlags =
    "-std=c++17 -nostdinc -nostdinc++ -fno-exceptions -fno-rtti -fPIC -O1 "
    "-fvisibility=hidden "
    "-fsigned-char -fno-fast-math -fno-math-errno "
    "-fno-trapping-math "
    "-Xclang -ffloat16-excess-precision=none -Xclang -fbfloat16-excess-precision=none "
    "-fno-strict-aliasing -fwrapv "
    "-Wno-unused-command-line-argument -Wno-psabi -fsanitize=thread "
    "-mllvm -tsan-instrument-func-entry-exit=0 -mllvm -tsan-instrument-memintrinsics=1 "
    "-mllvm -tsan-instrument-atomics=0";
constexpr const char* kLibrary =
    " -x c++ -shared -nostdlib -fno-sanitize-link-runtime -Wl,--no-undefined ";
// Of headers that do not change when only their times do.
constexpr const char* kHeaders = " -x c++-header -Xclang -fno-pch-timestamp ";

std::string compiler() {
  for (const char* name : {"clang++-19", "clang++-18", "clang++-17"})
    for (const char* folder : {"/usr/bin/", "/usr/local/bin/"})
      if (fs::exists(std::string(folder) + name)) return std::string(folder) + name;
  throw std::runtime_error(
      "the emulator of GPUs cannot compile without clang 17 or later (apt-get install clang-19)");
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream all;
  all << in.rdbuf();
  return all.str();
}

// Two rounds of 64-bit FNV-1a.
std::string hash_of(const std::string& text) {
  std::ostringstream out;
  for (uint64_t seed : {uint64_t{0xcbf29ce484222325}, uint64_t{0x9e3779b97f4a7c15}}) {
    for (const unsigned char c : text) seed = (seed ^ c) * 0x100000001b3;
    out << std::hex << seed;
  }
  return out.str();
}

std::string quote(const std::string& s) {
  return "'" + s + "'";
}

std::string flags_of(const Language& language) {
  std::string flags = kFlags;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("fma")) flags += " -mfma";
#endif
  return flags + " " + language.flags + " -isystem " + quote(language.include) + " -isystem " +
         quote(RUNE_GPU_INCLUDE);
}

// The headers of a folder.
std::string read_headers(const std::string& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::string all;
  for (const fs::path& file : files) all += read_file(file);
  return all;
}

// Has clang write a file, under a name of this process until it is whole, from a text that messages
// call `file`. (With "/dev/null" the text is empty.)
void build(const std::string& text, const std::string& flags, const std::string& file,
           const std::string& libraries, const fs::path& object) {
  fs::create_directories(object.parent_path());
  const fs::path folder =
      object.string() + "." + std::to_string(getpid()) + "." + std::to_string(random());
  fs::create_directories(folder);
  const fs::path source = folder / file, messages = folder / "messages", result = folder / "result";
  std::ofstream(source, std::ios::binary) << text;
  const std::string command = compiler() + " " + flags + " " + quote(source) + libraries + " -o " +
                              quote(result) + " 2> " + quote(messages);
  const int status = std::system(command.c_str());
  std::string text_of_messages = read_file(messages);
  if (status == 0) fs::rename(result, object);
  fs::remove_all(folder);
  if (status == 0) return;
  for (size_t at; (at = text_of_messages.find(folder.string() + "/")) != std::string::npos;)
    text_of_messages.erase(at, folder.string().size() + 1);
  throw std::runtime_error(text_of_messages);
}

// The language's header, parsed once, which takes clang longer than most kernels. Its file is that
// of one version of clang.
fs::path parsed_header(const Language& language, const std::string& flags, const std::string& key,
                       const fs::path& cache) {
  const auto version = fs::last_write_time(compiler()).time_since_epoch().count();
  const fs::path file = cache / (hash_of(key + std::to_string(version)) + ".pch");
  if (!fs::exists(file))
    build("", flags + kHeaders + "-include " + language.header, "/dev/null", "", file);
  return file;
}

}  // namespace

std::shared_ptr<Library> Library::compile(const Language& language, const std::string& text,
                                          const std::string& cache) {
  Translation translation = language.translate(text);
  const std::string flags = flags_of(language);
  const std::string key =
      flags + kLibrary + read_headers(language.include) + read_headers(RUNE_GPU_INCLUDE);
  const fs::path object = fs::path(cache) / (hash_of(translation.text + key) + ".so");
  if (!fs::exists(object)) {
    const fs::path header = parsed_header(language, flags, key, cache);
    build(translation.text, flags + kLibrary + "-include-pch " + quote(header), language.file,
          " -lm -lc -lgcc", object);
  }
  const std::shared_ptr<Library> library(new Library);
  library->handle_ = dlopen(object.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library->handle_) throw std::runtime_error(dlerror());
  if (void* host = dlsym(library->handle_, "rune_gpu_host"))
    *static_cast<const Host**>(host) = host_functions();
  for (KernelSignature& signature : translation.kernels) {
    Kernel kernel;
    kernel.entry = reinterpret_cast<decltype(kernel.entry)>(
        dlsym(library->handle_, ("rune_entry_" + signature.name).c_str()));
    const auto range = reinterpret_cast<void (*)(char**)>(
        dlsym(library->handle_, ("rune_threadgroup_" + signature.name).c_str()));
    if (!kernel.entry || !range)
      throw std::runtime_error("kernel " + signature.name + " is not in its library");
    char* ends[2];
    range(ends);
    kernel.threadgroup_begin = ends[0];
    kernel.threadgroup_end = ends[1];
    kernel.signature = std::move(signature);
    library->kernels_.push_back(std::move(kernel));
  }
  return library;
}

Library::~Library() {
  if (handle_) dlclose(handle_);
}

const Kernel* Library::find(const std::string& name) const {
  for (const Kernel& kernel : kernels_)
    if (kernel.signature.name == name) return &kernel;
  return nullptr;
}

}  // namespace rune::gpu_emulator
