#include "backends/interpreter/interpreter_device.h"

#include "alu/alu.h"
#include "base/error.h"
#include "lower/interpreter.h"
#include "lower/text.h"
#include "lower/verify.h"
#include "runtime/host_device.h"

namespace rune::runtime {

namespace {

class InterpreterProgram : public Program {
 public:
  explicit InterpreterProgram(lower::Kernel kernel) : interpreter_(std::move(kernel)) {}

  void launch(const LaunchArguments& launch) override {
    std::vector<lower::Memory> memories;
    for (void* buffer : launch.buffers) memories.push_back({buffer, lower::Memory::kAsDefined});
    interpreter_.run(memories, launch.vars);
  }

 private:
  lower::Interpreter interpreter_;
};

class InterpreterCompiler : public Compiler {
 public:
  std::vector<std::shared_ptr<Program>> compile(std::span<const KernelSource> sources) override {
    std::vector<std::shared_ptr<Program>> programs;
    for (const KernelSource& source : sources)
      programs.push_back(std::make_shared<InterpreterProgram>(checked_kernel(source)));
    return programs;
  }

 private:
  static lower::Kernel checked_kernel(const KernelSource& source) {
    lower::Kernel kernel;
    try {
      kernel = lower::parse(source.text);
    } catch (const UserError& e) {
      fail(source, e.what());
    }
    const std::vector<std::string> violations = lower::verify(kernel);
    if (!violations.empty()) {
      std::string all;
      for (const std::string& v : violations) all += "\n  " + v;
      fail(source, all);
    }
    return kernel;
  }

  [[noreturn]] static void fail(const KernelSource& source, const std::string& message) {
    user_error(ErrorKind::Runtime, "interpreter: cannot compile kernel ", source.name, ": ",
               message);
  }
};

class InterpreterDevice : public HostDevice {
 public:
  explicit InterpreterDevice(const Capabilities& capabilities) : capabilities_(capabilities) {}
  const std::string& name() const override { return capabilities_.name; }
  const Capabilities& capabilities() const override { return capabilities_; }
  Compiler& compiler() override { return compiler_; }

 private:
  const Capabilities capabilities_;
  InterpreterCompiler compiler_;
};

}  // namespace

std::shared_ptr<Device> make_interpreter_device(const Capabilities& capabilities) {
  return std::make_shared<InterpreterDevice>(capabilities);
}

Capabilities interpreter_capabilities() {
  Capabilities caps;
  caps.name = "interpreter";
  caps.model = ExecutionModel::Grid;
  caps.num_cores = 8;
  caps.vector_bits = 128;
  caps.max_threads_per_group = 256;
  caps.simd_width = 32;
  caps.shared_memory_bytes = 32 << 10;
  // Loops are never expanded, so that tests of loops test those that the host runs.
  caps.max_expanded_nodes = 0;
  caps.thread_operation_ns = 1e6;
  for (int d = 0; d < kNumDTypes; ++d) {
    caps.dtypes.set(d);
    caps.arithmetic.set(d);
    caps.simd_shuffles.set(d);
  }
  set_all_native(caps);
  for (auto* table : {&caps.simd_ops, &caps.atomic_ops})
    for (auto& ops : *table)
      for (const AluOp op : {AluOp::Add, AluOp::Mul, AluOp::Max, AluOp::Min})
        ops.set(static_cast<size_t>(op));
  return caps;
}

}  // namespace rune::runtime
