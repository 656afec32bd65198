#include "backends/cpu/cpu_device.h"

#include <mutex>

#include "backends/cpu/cpu_capabilities.h"
#include "base/error.h"
#include "runtime/caching_allocator.h"
#include "runtime/host_device.h"
#include "runtime/thread_pool.h"

namespace rune::runtime {

namespace {

using Entry = void (*)(void* const* buffers, const int64_t* vars, int64_t begin, int64_t end);

std::mutex hook_mutex;
CompileHook& hook() {
  static CompileHook instance;
  return instance;
}

class CpuProgram : public Program {
 public:
  CpuProgram(Entry entry, const KernelSource& source, std::shared_ptr<void> keep_alive)
      : entry_(entry),
        tasks_(source.grid),
        scratch_bytes_(static_cast<size_t>(source.scratch_bytes)),
        estimated_ns_(source.estimated_ns),
        keep_alive_(std::move(keep_alive)) {}

  void launch(const LaunchArguments& arguments) override {
    parallel_ranges(tasks_, estimated_ns_, [&](NextRange next) {
      TaskRange range;
      if (!next(range)) return;
      if (scratch_bytes_ == 0) {
        do entry_(arguments.buffers.data(), arguments.vars.data(), range.begin, range.end);
        while (next(range));
        return;
      }
      // This thread's tasks use the same scratch memory.
      const ScopedMemory scratch(caching_allocator(), scratch_bytes_);
      int64_t previous = -1;
      std::vector<void*> buffers(arguments.buffers.begin(), arguments.buffers.end());
      buffers.push_back(scratch.get());
      buffers.push_back(&previous);
      do {
        entry_(buffers.data(), arguments.vars.data(), range.begin, range.end);
        previous = range.end - 1;
      } while (next(range));
    });
  }

 private:
  const Entry entry_;
  const int64_t tasks_;
  const size_t scratch_bytes_;
  const double estimated_ns_;
  const std::shared_ptr<void> keep_alive_;
};

class CpuCompiler : public Compiler {
 public:
  std::vector<std::shared_ptr<Program>> compile(std::span<const KernelSource> sources) override {
    if (sources.empty()) return {};
    CompileHook compile_module;
    {
      const std::lock_guard<std::mutex> lock(hook_mutex);
      compile_module = hook();
    }
    if (!compile_module)
      user_error(ErrorKind::Runtime,
                 "cpu: cannot compile a program (no LLVM compiler is registered)",
                 "\nhint: `import rune_jit` registers one");
    std::vector<std::shared_ptr<Program>> programs;
    for (size_t begin = 0, end = 0; begin < sources.size(); begin = end) {
      std::vector<std::string> names;
      do names.push_back(sources[end++].name);
      while (end < sources.size() && sources[end].text.empty());
      const auto [entry_points, keep_alive] = compile_module(sources[begin].text, names);
      RUNE_CHECK(entry_points.size() == names.size(), "the compiler returned ", entry_points.size(),
                 " functions of ", names.size());
      for (size_t i = 0; i < names.size(); ++i) {
        if (!entry_points[i])
          user_error(ErrorKind::Runtime, "cpu: cannot find kernel ", names[i],
                     " in the compiled module");
        programs.push_back(std::make_shared<CpuProgram>(reinterpret_cast<Entry>(entry_points[i]),
                                                        sources[begin + i], keep_alive));
      }
    }
    return programs;
  }
};

class CpuDevice : public HostDevice {
 public:
  explicit CpuDevice(int ordinal) : name_(ordinal == 0 ? "cpu" : concat("cpu:", ordinal)) {}
  const std::string& name() const override { return name_; }
  const Capabilities& capabilities() const override { return cpu_capabilities(); }
  Compiler& compiler() override { return compiler_; }

 private:
  const std::string name_;
  CpuCompiler compiler_;
};

}  // namespace

void set_compile_hook(CompileHook compile_module) {
  const std::lock_guard<std::mutex> lock(hook_mutex);
  hook() = std::move(compile_module);
}

std::shared_ptr<Device> cpu_device(int ordinal) {
  if (ordinal < 0) user_error(ErrorKind::Value, "cpu_device: cannot open cpu:", ordinal);
  return std::make_shared<CpuDevice>(ordinal);
}

}  // namespace rune::runtime
