#include "backends/cuda/compiler.h"

#include <array>
#include <utility>

#include "backends/cuda/nvrtc.h"
#include "backends/cuda/services.h"
#include "base/error.h"

namespace rune::cuda {

// Code that the device has loaded.
class Compiler::Module {
 public:
  Module(Context& context, const std::string& image) : context_(context) {
    const Context::Scope scope(context);
    context.check(driver().load_module(&handle_, image.c_str()), "load compiled code");
  }
  Module(const Module&) = delete;
  // Launches of its kernels may be running. Errors are theirs, and the next wait reports them.
  ~Module() {
    if (context_.is_dead()) return;
    try {
      const Context::Scope scope(context_);
      driver().synchronize_stream(context_.stream());
      driver().unload_module(handle_);
    } catch (const UserError&) {  // another thread met an error that destroyed the context
    }
  }

  FunctionHandle find(const std::string& kernel) const {
    FunctionHandle function = nullptr;
    context_.check(driver().get_function(&function, handle_, kernel.c_str()), "find a kernel");
    return function;
  }

 private:
  Context& context_;
  ModuleHandle handle_ = nullptr;
};

namespace {

class Program : public runtime::Program {
 public:
  Program(const runtime::KernelSource& source, std::shared_ptr<const void> module,
          FunctionHandle function, Context& context)
      : label_(std::make_shared<const std::string>(
            source.location.empty() ? source.name
                                    : concat(source.name, " (", source.location, ")"))),
        module_(std::move(module)),
        function_(function),
        grid_(static_cast<unsigned>(source.grid)),
        local_(static_cast<unsigned>(source.local)),
        num_buffers_(source.buffer_sizes.size()),
        context_(context) {}

  void launch(const runtime::LaunchArguments& arguments) override {
    RUNE_CHECK(arguments.buffers.size() == num_buffers_, "kernel ", *label_, ": ",
               arguments.buffers.size(), " buffers of ", num_buffers_);
    // A parameter is an address of its value; the variables are one struct.
    constexpr size_t kInline = 32;
    if (num_buffers_ < kInline) {
      std::array<void*, kInline> parameters;
      return launch(arguments, parameters.data());
    }
    std::vector<void*> parameters(num_buffers_ + 1);
    launch(arguments, parameters.data());
  }

 private:
  void launch(const runtime::LaunchArguments& arguments, void** parameters) {
    for (size_t i = 0; i < num_buffers_; ++i)
      parameters[i] = static_cast<void*>(const_cast<void**>(&arguments.buffers[i]));
    parameters[num_buffers_] = const_cast<int64_t*>(arguments.vars.data());
    const Context::Scope scope(context_);
    context_.check_launch(driver().launch(function_, grid_, 1, 1, local_, 1, 1, 0,
                                          context_.stream(), parameters, nullptr),
                          label_);
  }

  const std::shared_ptr<const std::string> label_;  // the name, and the user's line
  const std::shared_ptr<const void> module_;
  const FunctionHandle function_;
  const unsigned grid_, local_;
  const size_t num_buffers_;
  Context& context_;
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
  auto module = std::make_shared<const Module>(context_, *code);
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
    programs.push_back(std::make_shared<Program>(source, module, function, context_));
  }
  return programs;
}

}  // namespace rune::cuda
