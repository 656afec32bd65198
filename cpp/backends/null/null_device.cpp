#include "backends/null/null_device.h"

#include "backends/interpreter/interpreter_device.h"
#include "base/error.h"
#include "runtime/host_device.h"

namespace rune::runtime {

namespace {

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

class NullDevice : public HostDevice {
 public:
  const std::string& name() const override { return capabilities_.name; }
  const Capabilities& capabilities() const override { return capabilities_; }
  Compiler& compiler() override { return compiler_; }

 private:
  Capabilities capabilities_ = null_capabilities();
  NullCompiler compiler_;
};

}  // namespace

std::shared_ptr<Device> make_null_device() {
  return std::make_shared<NullDevice>();
}

Capabilities null_capabilities() {
  Capabilities caps = interpreter_capabilities();
  caps.name = "null";
  caps.languages = {"null", "c"};
  caps.simd_ops = caps.atomic_ops = {};
  caps.simd_shuffles.reset();
  return caps;
}

}  // namespace rune::runtime
