#include "backends/cuda/cuda_device.h"

#include "backends/cuda/allocator.h"
#include "backends/cuda/compiler.h"
#include "backends/cuda/context.h"
#include "backends/cuda/cublas.h"
#include "backends/cuda/cuda_capabilities.h"
#include "backends/cuda/interchange.h"
#include "backends/cuda/nvrtc.h"
#include "backends/cuda/transfers.h"
#include "base/error.h"

namespace rune::cuda {

namespace {

int architecture_of(const Context& context) {
  return 10 * context.attribute(Attribute::ComputeMajor) +
         context.attribute(Attribute::ComputeMinor);
}

Capabilities read_capabilities(const Context& context) {
  Capabilities caps = capabilities();
  const auto read = [&](Attribute attribute, auto& field) {
    if (const int value = context.attribute(attribute); value > 0) field = value;
  };
  read(Attribute::NumMultiprocessors, caps.num_cores);
  read(Attribute::MaxThreadsPerBlock, caps.max_threads_per_group);
  read(Attribute::WarpSize, caps.simd_width);
  read(Attribute::L2Bytes, caps.last_level_bytes);
  read(Attribute::MaxGrid, caps.max_grid);
  // The matrix products that kernels use need compute capability 8.0.
  if (architecture_of(context) < 80) {
    caps.matrix_ops.clear();
  } else if (!cublas_files(driver().version).empty()) {
    caps.library_rates = library_rates(caps.num_cores);
  }
  return caps;
}

class Device : public runtime::Device {
 public:
  explicit Device(int ordinal)
      : context_(ordinal),
        capabilities_(read_capabilities(context_)),
        allocator_(context_),
        compiler_(context_, architecture_of(context_)),
        transfers_(context_),
        interchange_(context_, ordinal) {}

  const std::string& name() const override { return capabilities_.name; }
  const Capabilities& capabilities() const override { return capabilities_; }
  runtime::Allocator& allocator() override { return allocator_; }
  runtime::Compiler& compiler() override { return compiler_; }
  std::unique_ptr<runtime::Sequence> sequence(
      std::span<const runtime::SequencePart> parts) override {
    return compiler_.sequence(parts);
  }
  bool runs_loops() const override { return driver().create_condition && driver().add_graph_node; }
  size_t alignment() const override { return capabilities_.access_bytes; }
  runtime::Interchange* interchange() override { return &interchange_; }
  void synchronize() override { context_.synchronize(); }
  std::optional<double> time(const std::function<void()>& launch) override {
    return context_.time(launch);
  }
  void copy_in(void* device, const void* host, size_t bytes) override {
    if (bytes) transfers_.copy_in(device, host, bytes);
  }
  void copy_out(void* host, const void* device, size_t bytes) override {
    if (bytes) transfers_.copy_out(host, device, bytes);
  }
  void copy(void* to, const void* from, size_t bytes) override {
    if (!bytes) return;
    const Context::Scope scope(context_);
    context_.check(driver().copy(to_address(to), to_address(from), bytes, context_.stream()),
                   "copy within the device's memory");
  }
  // Copies in this device's stream. The other device's later launches wait for the copy.
  bool copy_from(runtime::Device& device, void* to, const void* from, size_t bytes) override {
    auto* const other = dynamic_cast<Device*>(&device);
    if (!other || !bytes) return other;
    const StreamHandle here = context_.stream(), there = other->context_.stream();
    other->allocator_.share_with(context_.device());
    {
      const Context::Scope scope(other->context_);
      other->context_.order(there, here);
    }
    const Context::Scope scope(context_);
    context_.check(driver().copy_peer(to_address(to), context_.handle(), to_address(from),
                                      other->context_.handle(), bytes, here),
                   "copy from another device's memory");
    context_.order(here, there);
    return true;
  }

 private:
  Context context_;
  const Capabilities capabilities_;
  Allocator allocator_;
  Compiler compiler_;
  Transfers transfers_;
  Interchange interchange_;
};

}  // namespace

std::shared_ptr<runtime::Device> make_device(int ordinal) {
  // The device is never destroyed: memory and programs hold references to parts of it, and at exit
  // they may be destroyed after it.
  return {new Device(ordinal), [](runtime::Device*) {}};
}

std::string describe() {
  std::string text;
  int version = 0;
  try {
    const Driver& loaded = driver();
    version = loaded.version;
    text = concat("driver for CUDA ", version / 1000, ".", version % 1000 / 10);
    int count = 0;
    loaded.device_count(&count);
    for (int i = 0; i < count; ++i) {
      int device = 0;
      char name[256] = {};
      loaded.device_get(&device, i);
      loaded.device_name(name, sizeof name, device);
      text += concat("\ncuda:", i, " ", static_cast<const char*>(name));
    }
  } catch (const UserError& error) {
    text = error.what();
  }
  try {
    version = Nvrtc::find(version).version();
    text += concat("\nNVRTC of CUDA ", version / 1000, ".", version % 1000 / 10);
  } catch (const UserError& error) {
    text += concat("\n", error.what());
  }
  const std::vector<std::string> products = cublas_files(version ? version : 13000);
  text += products.empty() ? "\nno cuBLAS" : "\ncuBLAS in " + products.front();
  return text;
}

}  // namespace rune::cuda
