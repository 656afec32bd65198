// NVRTC, whose result is the text.
#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "fake.h"

using namespace rune::cuda_fake;

struct NvrtcProgram {
  std::string code, log = "a log";
};

EXPORTED int nvrtcVersion(int* major, int* minor) {
  *major = static_cast<int>(numbers()["nvrtc_version"] / 1000);
  *minor = static_cast<int>(numbers()["nvrtc_version"] % 1000 / 10);
  return 0;
}
EXPORTED const char* nvrtcGetErrorString(int) {
  return "NVRTC_ERROR_FAKE";
}
EXPORTED int nvrtcGetNumSupportedArchs(int* count) {
  *count = 3;
  return 0;
}
EXPORTED int nvrtcGetSupportedArchs(int* values) {
  const int known[] = {75, 90, 100};
  std::copy(std::begin(known), std::end(known), values);
  return 0;
}
EXPORTED int nvrtcCreateProgram(NvrtcProgram** program, const char* text, const char*, int,
                                const char* const*, const char* const*) {
  *program = new NvrtcProgram{std::string("fake ") + text};
  return 0;
}
EXPORTED int nvrtcDestroyProgram(NvrtcProgram** program) {
  delete *program;
  return 0;
}
EXPORTED int nvrtcCompileProgram(NvrtcProgram* program, int, const char* const*) {
  const std::lock_guard<std::recursive_mutex> lock(state().mutex);
  ++state().counts["nvrtcCompileProgram"];
  constexpr int kFailed = 6;
  if (!numbers()["emulate"])
    return program->code.find("not CUDA") != std::string::npos ? kFailed : 0;
  program->log.clear();
  try {
    compile(program->code.substr(5));
    return 0;
  } catch (const std::runtime_error& error) {
    program->log = error.what();
    return kFailed;
  }
}
EXPORTED int nvrtcGetProgramLogSize(NvrtcProgram* program, size_t* bytes) {
  *bytes = program->log.size() + 1;
  return 0;
}
EXPORTED int nvrtcGetProgramLog(NvrtcProgram* program, char* log) {
  std::memcpy(log, program->log.c_str(), program->log.size() + 1);
  return 0;
}
EXPORTED int nvrtcGetCUBINSize(NvrtcProgram* program, size_t* bytes) {
  *bytes = program->code.size() + 1;
  return 0;
}
EXPORTED int nvrtcGetCUBIN(NvrtcProgram* program, char* bytes) {
  std::memcpy(bytes, program->code.c_str(), program->code.size() + 1);
  return 0;
}
EXPORTED int nvrtcGetPTXSize(NvrtcProgram* program, size_t* bytes) {
  return nvrtcGetCUBINSize(program, bytes);
}
EXPORTED int nvrtcGetPTX(NvrtcProgram* program, char* bytes) {
  return nvrtcGetCUBIN(program, bytes);
}
