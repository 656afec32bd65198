#include "backends/cuda/nvrtc.h"

#include <algorithm>
#include <memory>
#include <mutex>

#include "backends/cuda/library.h"
#include "backends/cuda/services.h"
#include "base/error.h"
#include "base/options.h"

namespace rune::cuda {

using ProgramHandle = struct NvrtcProgramObject*;

struct Nvrtc::Functions {
  explicit Functions(const std::string& file) : library(file) {
    const auto find = [&](const char* symbol, auto& function) {
      is_complete &= library.load(symbol, function);
    };
    find("nvrtcVersion", version);
    find("nvrtcGetErrorString", error_string);
    find("nvrtcGetNumSupportedArchs", num_architectures);
    find("nvrtcGetSupportedArchs", architectures);
    find("nvrtcCreateProgram", create);
    find("nvrtcDestroyProgram", destroy);
    find("nvrtcCompileProgram", compile);
    find("nvrtcGetProgramLogSize", log_size);
    find("nvrtcGetProgramLog", log);
    find("nvrtcGetCUBINSize", cubin_size);
    find("nvrtcGetCUBIN", cubin);
    find("nvrtcGetPTXSize", ptx_size);
    find("nvrtcGetPTX", ptx);
  }

  Library library;
  bool is_complete = true;
  int (*version)(int* major, int* minor) = nullptr;
  const char* (*error_string)(int result) = nullptr;
  int (*num_architectures)(int* count) = nullptr;
  int (*architectures)(int* values) = nullptr;
  int (*create)(ProgramHandle* program, const char* text, const char* name, int num_headers,
                const char* const* headers, const char* const* names) = nullptr;
  int (*destroy)(ProgramHandle* program) = nullptr;
  int (*compile)(ProgramHandle program, int count, const char* const* options) = nullptr;
  int (*log_size)(ProgramHandle program, size_t* bytes) = nullptr;
  int (*log)(ProgramHandle program, char* text) = nullptr;
  int (*cubin_size)(ProgramHandle program, size_t* bytes) = nullptr;
  int (*cubin)(ProgramHandle program, char* bytes) = nullptr;
  int (*ptx_size)(ProgramHandle program, size_t* bytes) = nullptr;
  int (*ptx)(ProgramHandle program, char* bytes) = nullptr;
};

namespace {

std::vector<std::string> candidates() {
  if (!options().nvrtc.empty()) return {options().nvrtc};
  std::vector<std::string> files =
      services().nvrtc_files ? services().nvrtc_files() : std::vector<std::string>{};
  files.insert(files.end(), {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"});
  return files;
}

}  // namespace

const Nvrtc& Nvrtc::find(int driver_version) {
  static std::mutex mutex;
  static std::vector<std::unique_ptr<const Nvrtc>> found;  // usually one
  const std::lock_guard<std::mutex> lock(mutex);
  const auto suits = [&](int version) {
    return driver_version == 0 || version / 1000 <= driver_version / 1000;
  };
  for (const auto& nvrtc : found)
    if (suits(nvrtc->version())) return *nvrtc;
  std::string newest;
  for (const std::string& file : candidates()) {
    auto functions = std::make_unique<Functions>(file);
    if (!functions->library.handle() || !functions->is_complete) continue;
    int major = 0, minor = 0;
    functions->version(&major, &minor);
    const int version = major * 1000 + minor * 10;
    if (!suits(version)) {
      if (newest.empty()) newest = concat(major, ".", minor);
      continue;
    }
    // They stay loaded until the process ends.
    found.emplace_back(new Nvrtc(functions.release(), version));
    return *found.back();
  }
  const int major = driver_version ? driver_version / 1000 : 13;
  const char* const extra = major < 13 ? "cuda12" : "cuda";
  if (newest.empty())
    user_error(ErrorKind::Runtime, "cuda: cannot compile without NVRTC (none was found)",
               "\nhint: pip install 'rune_jit[", extra, "]'");
  user_error(ErrorKind::Runtime, "cuda: cannot compile for this driver (NVRTC is of CUDA ", newest,
             ", the driver of CUDA ", major, ".", driver_version % 1000 / 10,
             ")\nhint: pip install 'rune_jit[", extra, "]'");
}

int Nvrtc::target(int architecture) const {
  int count = 0;
  functions_->num_architectures(&count);
  std::vector<int> known(static_cast<size_t>(count));
  functions_->architectures(known.data());
  std::sort(known.begin(), known.end());
  const auto above = std::upper_bound(known.begin(), known.end(), architecture);
  if (above == known.begin())
    user_error(ErrorKind::Runtime, "cuda: cannot compile for compute capability ",
               architecture / 10, ".", architecture % 10, " (NVRTC of CUDA ", version_ / 1000, ".",
               version_ % 1000 / 10, " begins with ", known.empty() ? 0 : known[0] / 10, ".",
               known.empty() ? 0 : known[0] % 10, ")\nhint: pip install 'rune_jit[cuda12]'");
  return above[-1];
}

std::vector<std::string> Nvrtc::options(int architecture, bool is_portable) const {
  const int chosen = target(architecture);
  // If the card is newer than NVRTC, NVRTC makes PTX, which the driver compiles.
  const char* const kind = chosen == architecture && !is_portable ? "sm_" : "compute_";
  return {concat("--gpu-architecture=", kind, chosen), "--fmad=false"};
}

Image Nvrtc::compile(const std::string& text, const std::vector<std::string>& options) const {
  const auto check = [&](int result, const char* what) {
    if (result != 0)
      user_error(ErrorKind::Runtime, "cuda: cannot ", what, " (", functions_->error_string(result),
                 ")");
  };
  ProgramHandle program = nullptr;
  check(functions_->create(&program, text.c_str(), "rune_jit.cu", 0, nullptr, nullptr),
        "start NVRTC");
  const std::unique_ptr<ProgramHandle, int (*)(ProgramHandle*)> owner(&program,
                                                                      functions_->destroy);
  std::vector<const char*> arguments;
  for (const std::string& option : options) arguments.push_back(option.c_str());
  const int failed =
      functions_->compile(program, static_cast<int>(arguments.size()), arguments.data());
  Image image;
  size_t bytes = 0;
  if (functions_->log_size(program, &bytes) == 0 && bytes > 1) {
    image.log.resize(bytes);
    functions_->log(program, image.log.data());
    image.log.resize(bytes - 1);  // without the zero at the end
  }
  if (failed)
    user_error(ErrorKind::Runtime, "cuda: cannot compile (", functions_->error_string(failed),
               "): ", image.log, "\n", text);
  const bool is_ptx = options.front().find("compute_") != std::string::npos;
  check((is_ptx ? functions_->ptx_size : functions_->cubin_size)(program, &bytes), "compile");
  image.bytes.resize(bytes);
  check((is_ptx ? functions_->ptx : functions_->cubin)(program, image.bytes.data()), "compile");
  return image;
}

}  // namespace rune::cuda
