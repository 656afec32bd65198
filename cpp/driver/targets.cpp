#include "driver/targets.h"

#include <charconv>
#include <map>
#include <mutex>
#include <span>

#include "backends/cpu/cpu_capabilities.h"
#include "backends/cpu/cpu_device.h"
#include "backends/cuda/cuda_capabilities.h"
#include "backends/cuda/cuda_device.h"
#include "backends/interpreter/delayed_device.h"
#include "backends/interpreter/interpreter_device.h"
#include "backends/null/null_device.h"
#include "base/error.h"
#include "lower/text.h"
#include "metal/metal_device.h"
#include "render/cuda.h"
#include "render/identifier.h"
#include "render/llvm_ir.h"
#include "render/msl.h"
#include "runtime/caching_allocator.h"

namespace rune::driver {

namespace {

using Kernels = std::span<const lower::Kernel>;
using Texts = std::vector<std::string>;

Texts print_each(Kernels kernels) {
  Texts texts;
  for (const lower::Kernel& kernel : kernels) texts.push_back(lower::print(kernel));
  return texts;
}

// All kernels of a program are in one text, that of the first kernel. The others have empty texts.
template <std::string (*render)(Kernels)>
Texts render_together(Kernels kernels) {
  Texts texts(kernels.size());
  if (!kernels.empty()) texts[0] = render(kernels);
  return texts;
}

template <const Capabilities& (*capabilities)()>
Texts render_for_cpu(Kernels kernels) {
  const int register_bytes = std::max(capabilities().vector_bits / 8, render::kLeastRegisterBytes);
  return render::render_llvm_modules(kernels, register_bytes);
}

// A fixed machine with two cores and 512-bit vectors, so that tests of decisions do not depend on
// where they run.
Capabilities test_cores() {
  Capabilities caps = runtime::built_in_cpu_capabilities();
  caps.name = "test-cores";
  caps.num_cores = 2;
  caps.vector_bits = 512;
  caps.num_vector_registers = 32;
  caps.l2_bytes = 1 << 20;
  caps.last_level_bytes = 32 << 20;
  caps.bandwidth_bytes_per_ns = 10;
  caps.core_bandwidth_bytes_per_ns = 10;
  caps.last_level_bytes_per_ns = 20;
  caps.l2_bytes_per_ns = 40;
  caps.operations_per_ns = rates_by_size(50);
  caps.divisions_per_ns = rates_by_size(2.5);
  caps.launch_ns = 500;
  caps.parallel_ns = 5000;
  caps.has_nontemporal_stores = true;
  caps.has_prefetch = true;
  return caps;
}

template <const render::Dialect& (*dialect)()>
std::string render_by(Kernels kernels) {
  return render::render_c_like_library(kernels, dialect());
}

template <Capabilities (*make)()>
const Capabilities& made_once() {
  static const Capabilities caps = make();
  return caps;
}

// The capabilities for a device whose kernels the interpreter runs.
template <Capabilities (*make)()>
Capabilities interpreted() {
  Capabilities caps = make();
  caps.name += "-interpreted";
  caps.languages.clear();
  return caps;
}

Capabilities delayed() {
  Capabilities caps = runtime::interpreter_capabilities();
  caps.name = "interpreter-delayed";
  return caps;
}

// Opens the interpreter in place of the device whose kernels it runs.
template <Capabilities (*make)()>
Target interpreter(const std::string& name) {
  return {name, made_once<make>, print_each, nullptr,
          [](int) { return runtime::make_interpreter_device(made_once<make>()); }};
}

const std::vector<Target>& targets() {
  static const std::vector<Target> all = {
      {"cpu", runtime::cpu_capabilities, render_for_cpu<runtime::cpu_capabilities>,
       render::identifier, [](int ordinal) { return runtime::cpu_device(ordinal); }},
      {"metal", made_once<metal::capabilities>, render_together<render_by<render::msl_dialect>>,
       render::identifier, [](int) { return metal::make_device(); }},
      {"cuda", made_once<cuda::capabilities>, render_together<render_by<render::cuda_dialect>>,
       render::identifier, cuda::make_device},
      interpreter<runtime::interpreter_capabilities>("interpreter"),
      interpreter<interpreted<metal::capabilities>>("metal-interpreted"),
      interpreter<interpreted<cuda::capabilities>>("cuda-interpreted"),
      {"interpreter-delayed", made_once<delayed>, print_each, nullptr,
       [](int) {
         return runtime::make_delayed_device(runtime::make_interpreter_device(delayed()));
       }},
      {"null", made_once<runtime::null_capabilities>, print_each, nullptr,
       [](int) { return runtime::make_null_device(); }},
      {"test-cores", made_once<test_cores>, render_for_cpu<made_once<test_cores>>,
       render::identifier, nullptr},
  };
  return all;
}

struct DeviceName {
  std::string target;
  int ordinal = 0;
};

DeviceName split_name(const std::string& device) {
  const size_t colon = device.find(':');
  DeviceName name{device.substr(0, colon), 0};
  if (colon == std::string::npos) return name;
  const char* begin = device.data() + colon + 1;
  const char* end = device.data() + device.size();
  const auto [stop, error] = std::from_chars(begin, end, name.ordinal);
  if (error != std::errc() || stop != end || name.ordinal < 0)
    user_error(ErrorKind::Value, "device: cannot read `", device,
               "` (after the colon comes a number, as in cpu:1)");
  return name;
}

}  // namespace

const Target& find_target(const std::string& device) {
  const DeviceName name = split_name(device);
  std::string known;
  for (const Target& target : targets()) {
    if (target.name == name.target) return target;
    known += (known.empty() ? "" : ", ") + target.name;
  }
  user_error(ErrorKind::Value, "device: cannot find `", device, "`\nhint: the devices are ", known);
}

std::vector<std::string> target_names() {
  std::vector<std::string> names;
  for (const Target& target : targets()) names.push_back(target.name);
  return names;
}

namespace {

struct OpenDevices {
  std::mutex mutex;
  std::map<std::pair<std::string, int>, std::shared_ptr<runtime::Device>> by_name;
};

OpenDevices& open_devices() {
  static OpenDevices devices;
  return devices;
}

}  // namespace

const Capabilities& known_capabilities(const std::string& device) {
  const Target& target = find_target(device);
  OpenDevices& open = open_devices();
  const std::lock_guard<std::mutex> lock(open.mutex);
  const auto found = open.by_name.find({target.name, split_name(device).ordinal});
  return found != open.by_name.end() && found->second ? found->second->capabilities()
                                                      : target.capabilities();
}

std::shared_ptr<runtime::Device> open_device(const std::string& device) {
  const Target& target = find_target(device);
  const int ordinal = split_name(device).ordinal;
  if (!target.open)
    user_error(ErrorKind::Runtime, "device: cannot run on ", device,
               " (it can only be rendered for)");
  OpenDevices& open = open_devices();
  const std::lock_guard<std::mutex> lock(open.mutex);
  std::shared_ptr<runtime::Device>& known = open.by_name[{target.name, ordinal}];
  if (!known) known = target.open(ordinal);
  return known;
}

void release_memory() {
  OpenDevices& open = open_devices();
  const std::lock_guard<std::mutex> lock(open.mutex);
  for (const auto& [name, device] : open.by_name)
    if (device) device->allocator().trim();
  runtime::caching_allocator().trim();  // arrays of host calls use it even without a CPU device
}

}  // namespace rune::driver
