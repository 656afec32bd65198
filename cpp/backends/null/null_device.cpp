#include "backends/null/null_device.h"

#include <cstring>
#include <new>

#include "alu/alu.h"
#include "base/error.h"

namespace rune::runtime {

namespace {

constexpr std::align_val_t kAlignment{64};

class HostAllocator : public Allocator {
 public:
  void* allocate(size_t bytes) override {
    void* const memory = ::operator new(bytes, kAlignment, std::nothrow);
    if (!memory) user_error(ErrorKind::Runtime, "null: cannot allocate ", bytes, " bytes");
    return memory;
  }
  void deallocate(void* memory, size_t) override { ::operator delete(memory, kAlignment); }
};

class NullProgram : public Program {
 public:
  explicit NullProgram(std::string name) : name_(std::move(name)) {}
  void launch(const LaunchArguments&) override {
    user_error(ErrorKind::Runtime, "null: cannot launch kernel ", name_,
               " (the null device compiles and plans, but runs nothing)\nhint: choose another "
               "device, such as `cpu`");
  }

 private:
  std::string name_;
};

class NullCompiler : public Compiler {
 public:
  std::vector<std::shared_ptr<Program>> compile(std::span<const KernelSource> sources) override {
    std::vector<std::shared_ptr<Program>> programs;
    for (const KernelSource& source : sources)
      programs.push_back(std::make_shared<NullProgram>(source.name));
    return programs;
  }
};

class NullDevice : public Device {
 public:
  const std::string& name() const override { return capabilities_.name; }
  bool addresses_host_memory() const override { return true; }
  const Capabilities& capabilities() const override { return capabilities_; }
  Allocator& allocator() override { return allocator_; }
  Compiler& compiler() override { return compiler_; }
  void synchronize() override {}
  void copy_in(void* device, const void* host, size_t bytes) override {
    if (bytes) std::memcpy(device, host, bytes);
  }
  void copy_out(void* host, const void* device, size_t bytes) override {
    if (bytes) std::memcpy(host, device, bytes);
  }
  void copy(void* to, const void* from, size_t bytes) override {
    if (bytes) std::memmove(to, from, bytes);
  }

 private:
  Capabilities capabilities_ = null_capabilities();
  HostAllocator allocator_;
  NullCompiler compiler_;
};

}  // namespace

std::shared_ptr<Device> make_null_device() {
  return std::make_shared<NullDevice>();
}

Capabilities null_capabilities() {
  Capabilities caps;
  caps.name = "null";
  caps.model = ExecutionModel::Grid;
  caps.num_cores = 8;
  caps.vector_bits = 128;
  caps.max_threads_per_group = 256;
  caps.simd_width = 32;
  caps.shared_memory_bytes = 32 << 10;
  for (int d = 0; d < kNumDTypes; ++d) {
    caps.dtypes.set(d);
    caps.arithmetic.set(d);
  }
  set_all_native(caps);
  return caps;
}

}  // namespace rune::runtime
