#include "backends/cuda/compiler.h"

#include <iterator>
#include <utility>

#include "backends/cuda/nvrtc.h"
#include "backends/cuda/services.h"
#include "base/error.h"
#include "base/options.h"

namespace rune::cuda {

// The first architecture whose kernels can wait for earlier kernels themselves.
constexpr int kWaitingKernels = 90;

// Code that the device has loaded.
class Compiler::Module {
 public:
  Module(Context& context, const std::string& image, bool waits)
      : context_(context), waits_(waits) {
    const Context::Scope scope(context);
    context.check(driver().load_module(&handle_, image.c_str()), "load compiled code");
  }
  Module(const Module&) = delete;
  // Waits for launches of the kernels, which may be running. Errors belong to them, and the next
  // wait reports them.
  ~Module() {
    if (context_.is_dead()) return;
    try {
      const Context::Scope scope(context_);
      driver().synchronize_stream(context_.stream());
      driver().unload_module(handle_);
    } catch (const UserError&) {  // an error in another thread has destroyed the context
    }
  }

  FunctionHandle find(const std::string& kernel) const {
    FunctionHandle function = nullptr;
    context_.check(driver().get_function(&function, handle_, kernel.c_str()), "find a kernel");
    return function;
  }
  // Whether the kernels themselves wait for the end of earlier ones, as rendered kernels do.
  bool waits() const { return waits_; }

 private:
  Context& context_;
  const bool waits_;
  ModuleHandle handle_ = nullptr;
};

namespace {

// A kernel whose estimated time is at most this is short: it is launched as a graph of its own.
// That takes the host 1.5 us instead of 2.7 us, but the kernel does not overlap with the one before
// it, which costs more than it saves if the device is slower than the host. The limit is lower for
// threads that work together, because estimates leave out that they wait for one another.
constexpr double kShortNs = 2000, kShortTogetherNs = 250;

class Program : public runtime::Program {
 public:
  Program(LoadedKernel kernel, Context& context, bool is_short)
      : kernel_(std::move(kernel)), context_(context) {
    if (!is_short || !options().cuda_graphs) return;
    GraphStep step;
    step.kernel = &kernel_;
    graph_ = make_sequence({step}, nullptr, context_);
  }

  const LoadedKernel& kernel() const { return kernel_; }
  bool joins_sequences() const override { return true; }

  void launch(const runtime::LaunchArguments& arguments) override {
    if (!graph_) return launch_kernel(kernel_, arguments, context_);
    context_.launch_short([&] {
      if (context_.runs_short_kernels())
        graph_->launch({&arguments, 1});
      else
        launch_kernel(kernel_, arguments, context_);
    });
  }

 private:
  const LoadedKernel kernel_;
  Context& context_;
  std::unique_ptr<runtime::Sequence> graph_;  // if the kernel is short
};

}  // namespace

std::shared_ptr<const Compiler::Module> Compiler::module_of(const std::string& text) {
  std::weak_ptr<const Module>& known = modules_[text];
  if (std::shared_ptr<const Module> module = known.lock()) return module;
  const Nvrtc& nvrtc = Nvrtc::find(driver().version);
  const std::vector<std::string> options = nvrtc.options(architecture_);
  std::string key = concat("cuda\n", nvrtc.version(), "\n");
  for (const std::string& option : options) key += option + "\n";
  key += text;
  std::optional<std::string> code;
  if (services().read_cache) code = services().read_cache(key);
  if (!code) {
    code = nvrtc.compile(text, options).bytes;
    if (services().write_cache) services().write_cache(key, *code);
  }
  const bool waits = nvrtc.target(architecture_) >= kWaitingKernels &&
                     text.find("griddepcontrol.wait") != std::string::npos;
  auto module = std::make_shared<const Module>(context_, *code, waits);
  known = module;
  return module;
}

std::vector<std::shared_ptr<runtime::Program>> Compiler::compile(
    std::span<const runtime::KernelSource> sources) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::erase_if(modules_, [](const auto& entry) { return entry.second.expired(); });
  const Context::Scope scope(context_);
  std::vector<std::shared_ptr<runtime::Program>> programs;
  const std::string* text = nullptr;
  std::shared_ptr<const Module> module;
  for (const runtime::KernelSource& source : sources) {
    if (!source.text.empty()) {
      text = &source.text;
      module.reset();
    }
    if (source.product)
      if (std::shared_ptr<runtime::Program> program = cublas_.program(source)) {
        programs.push_back(std::move(program));
        continue;
      }
    RUNE_CHECK(text, "kernel ", source.name, " has no source");
    if (!module) module = module_of(*text);
    const FunctionHandle function = module->find(source.name);
    int allowed = 0;
    context_.check(driver().function_attribute(&allowed, kFunctionMaxThreads, function),
                   "read a kernel's limits");
    if (source.local > allowed)
      throw runtime::ThreadLimitError(
          concat("cuda: cannot launch kernel ", source.name, " with ", source.local,
                 " threads per block (it allows ", allowed, ")"),
          allowed);
    LoadedKernel kernel{label_of(source),
                        module,
                        function,
                        static_cast<unsigned>(source.grid),
                        static_cast<unsigned>(source.local),
                        source.buffer_sizes.size(),
                        module->waits() && !source.needs_early_loads};
    const double limit = source.independent_threads ? kShortNs : kShortTogetherNs;
    const bool is_short = source.estimated_ns && source.estimated_ns < limit;
    programs.push_back(std::make_shared<Program>(std::move(kernel), context_, is_short));
  }
  return programs;
}

std::shared_ptr<const LoopKernels> Compiler::loop_kernels() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (loop_kernels_) return loop_kernels_;
  const Context::Scope scope(context_);
  const std::shared_ptr<const Module> module = module_of(kLoopKernels);
  auto kernels = std::make_shared<LoopKernels>();
  LoadedKernel* const loaded[] = {&kernels->enter, &kernels->advance, &kernels->leave};
  for (size_t i = 0; i < std::size(loaded); ++i) {
    const char* const name = LoopKernels::kNames[i];
    *loaded[i] = {std::make_shared<const std::string>(name), module, module->find(name), 1, 1, 2};
  }
  return loop_kernels_ = std::move(kernels);
}

std::vector<GraphStep> Compiler::steps_of(std::span<const runtime::SequencePart> parts,
                                          bool& has_loops) {
  std::vector<GraphStep> steps;
  for (const runtime::SequencePart& part : parts) {
    GraphStep& step = steps.emplace_back();
    step.bytes = part.bytes;
    step.program = part.program;
    if (part.program) step.kernel = &dynamic_cast<const Program&>(*part.program).kernel();
    if (!part.loop) continue;
    has_loops = true;
    auto loop = std::make_shared<GraphLoop>();
    for (const runtime::SequenceLoop::Turn& turn : part.loop->turns)
      loop->turns.push_back({steps_of(turn.body, has_loops), steps_of(turn.end, has_loops)});
    step.loop = std::move(loop);
  }
  return steps;
}

std::unique_ptr<runtime::Sequence> Compiler::sequence(
    std::span<const runtime::SequencePart> parts) {
  if (!options().cuda_graphs) return nullptr;
  bool has_loops = false;
  std::vector<GraphStep> steps = steps_of(parts, has_loops);
  return make_sequence(std::move(steps), has_loops ? loop_kernels() : nullptr, context_);
}

}  // namespace rune::cuda
