#include "metal/compiler.h"

#include <algorithm>
#include <condition_variable>
#include <limits>

#include "base/error.h"

namespace rune::metal {

namespace {

// See render/msl.h for kernels with more buffers than slots.
constexpr size_t kMaxSlots = 31;
constexpr size_t kMaxDirect = kMaxSlots - 2;
constexpr size_t kMaxInlineBytes = 4096;  // of setBytes
constexpr size_t kMostLibraries = 32;     // the most libraries that are kept for reuse

MTLCompileOptions* compile_options() {
  MTLCompileOptions* options = [MTLCompileOptions new];
#if defined(__MAC_15_0)
  if (@available(macOS 15.0, *)) {
    options.languageVersion = MTLLanguageVersion3_2;
    options.mathMode = MTLMathModeSafe;
    options.mathFloatingPointFunctions = MTLMathFloatingPointFunctionsPrecise;
    return options;
  }
#endif
  options.languageVersion = MTLLanguageVersion3_1;
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wdeprecated-declarations"  // the only way before macOS 15
  options.fastMathEnabled = NO;
#pragma clang diagnostic pop
  return options;
}

constexpr int64_t kMaxPosition = std::numeric_limits<uint32_t>::max();

// Whether Metal may choose the threadgroups. dispatchThreads numbers all threads in 32 bits.
bool may_divide_freely(const runtime::KernelSource& source) {
  return source.independent_threads && source.grid <= kMaxPosition / source.local;
}

class Program : public runtime::Program {
 public:
  Program(const runtime::KernelSource& source, std::shared_ptr<const std::string> text,
          id<MTLComputePipelineState> pipeline, Queue& queue, Allocator& allocator, int num_cores)
      : name_(std::make_shared<const std::string>(source.name)),
        text_(std::move(text)),
        pipeline_(pipeline),
        grid_(static_cast<NSUInteger>(source.grid)),
        local_(static_cast<NSUInteger>(source.local)),
        is_free_(may_divide_freely(source)),
        estimated_ns_(source.estimated_ns / num_cores),
        queue_(queue),
        allocator_(allocator) {
    for (size_t i = 0; i < source.buffer_sizes.size(); ++i)
      buffers_.push_back({static_cast<size_t>(source.buffer_sizes[i]) *
                              static_cast<size_t>(size_of(source.buffer_dtypes[i])),
                          source.buffer_written[i]});
  }

  void launch(const runtime::LaunchArguments& arguments) override {
    const size_t count = buffers_.size();
    RUNE_CHECK(arguments.buffers.size() == count, "kernel ", *name_, ": ", arguments.buffers.size(),
               " buffers of ", count);
    const bool fits = count + !arguments.vars.empty() <= kMaxSlots;
    const size_t direct = fits ? count : kMaxDirect;
    RUNE_CHECK(arguments.vars.size_bytes() <= kMaxInlineBytes &&
                   (count - direct) * sizeof(uint64_t) <= kMaxInlineBytes,
               "kernel ", *name_, ": ", arguments.vars.size(), " variables, ", count, " buffers");
    std::vector<Binding> bindings;
    for (size_t i = 0; i < count; ++i) {
      bindings.push_back(allocator_.find(arguments.buffers[i]));
      bindings.back().bytes = buffers_[i].bytes;
      bindings.back().is_written = buffers_[i].is_written;
    }
    queue_.launch({name_, text_, direct, pipeline_, grid_, local_, is_free_, estimated_ns_},
                  bindings, arguments.vars);
  }

 private:
  struct Buffer {
    size_t bytes;
    bool is_written;
  };
  const std::shared_ptr<const std::string> name_, text_;
  const id<MTLComputePipelineState> pipeline_;
  const NSUInteger grid_, local_;
  const bool is_free_;  // whether Metal may choose the threadgroups
  const double estimated_ns_;
  std::vector<Buffer> buffers_;
  Queue& queue_;
  Allocator& allocator_;
};

bool combines_in_simd_groups(const Capabilities& capabilities) {
  const auto& ops = capabilities.simd_ops;
  return !capabilities.matrix_ops.empty() ||
         std::any_of(ops.begin(), ops.end(), [](const auto& of_dtype) { return of_dtype.any(); });
}

// Throws if the pipeline cannot run the kernel. simd_width is the width of the SIMD-groups that the
// kernel was lowered for, or 0 if any width will do.
void check_limits(const runtime::KernelSource& source, id<MTLComputePipelineState> pipeline,
                  int simd_width) {
  if (source.grid > kMaxPosition)
    user_error(ErrorKind::Runtime, "metal: cannot launch kernel ", source.name, " with ",
               source.grid, " threadgroups (at most ", kMaxPosition, ")");
  if (may_divide_freely(source)) return;
  const auto width = static_cast<int64_t>(pipeline.threadExecutionWidth);
  if (simd_width != 0 && width != simd_width)
    user_error(ErrorKind::Runtime, "metal: cannot launch kernel ", source.name,
               " in SIMD-groups of ", width, " threads (it was made for ", simd_width, ")");
  const auto limit = static_cast<int64_t>(pipeline.maxTotalThreadsPerThreadgroup);
  if (source.local > limit)
    throw runtime::ThreadLimitError(
        concat("metal: cannot launch kernel ", source.name, " with ", source.local,
               " threads per threadgroup (its pipeline allows ", limit, ")"),
        static_cast<int>(limit));
}

}  // namespace

Compiler::Compiler(id<MTLDevice> device, Queue& queue, Allocator& allocator,
                   const Capabilities& capabilities)
    : device_(device),
      queue_(queue),
      allocator_(allocator),
      num_cores_(capabilities.num_cores),
      simd_width_(combines_in_simd_groups(capabilities) ? capabilities.simd_width : 0) {
  @autoreleasepool {
    device.shouldMaximizeConcurrentCompilation = YES;
  }
}

Compiler::Library& Compiler::library_of(const std::string& text, const std::string& kernel) {
  if (const auto known = by_text_.find(text); known != by_text_.end()) {
    libraries_.splice(libraries_.begin(), libraries_, known->second);
    return libraries_.front();
  }
  std::string message;
  id<MTLLibrary> library = nil;
  @autoreleasepool {
    NSError* error = nil;
    library = [device_ newLibraryWithSource:to_ns(text) options:compile_options() error:&error];
    if (!library) message = describe(error);
  }
  if (!library)
    user_error(ErrorKind::Runtime, "metal: cannot compile kernel ", kernel, ": ", message, "\n",
               text);
  if (libraries_.size() >= kMostLibraries) {
    by_text_.erase(*libraries_.back().text);
    libraries_.pop_back();
  }
  libraries_.push_front(
      {std::make_shared<const std::string>(text), library, Archive(device_, text), {}});
  by_text_[*libraries_.front().text] = libraries_.begin();
  return libraries_.front();
}

// Makes the pipelines that the library lacks.
void Compiler::make_pipelines(Library& library, std::span<const runtime::KernelSource> sources) {
  struct Results {  // shared with completion handlers
    std::mutex mutex;
    std::condition_variable changed;
    size_t missing = 0;
    std::map<std::string, id<MTLComputePipelineState>> pipelines;
    std::string failed, message;  // the name and the message of a kernel that failed
  };
  const auto results = std::make_shared<Results>();
  @autoreleasepool {
    std::vector<MTLComputePipelineDescriptor*> descriptors;
    std::vector<std::string> names;
    for (const runtime::KernelSource& source : sources) {
      if (library.pipelines.count(source.name)) continue;
      const id<MTLFunction> function = [library.library newFunctionWithName:to_ns(source.name)];
      if (!function) {
        results->failed = source.name;
        results->message = "its library has no such function";
        break;
      }
      descriptors.push_back(library.archive.describe(function));
      names.push_back(source.name);
    }
    if (results->failed.empty()) {
      results->missing = names.size();
      for (size_t i = 0; i < names.size(); ++i) {
        const std::string name = names[i];
        [device_
            newComputePipelineStateWithDescriptor:descriptors[i]
                                          options:MTLPipelineOptionNone
                                completionHandler:^(id<MTLComputePipelineState> pipeline,
                                                    MTLComputePipelineReflection*, NSError* error) {
                                  const std::lock_guard<std::mutex> lock(results->mutex);
                                  if (pipeline) {
                                    results->pipelines[name] = pipeline;
                                  } else {
                                    results->failed = name;
                                    results->message = describe(error);
                                  }
                                  --results->missing;
                                  results->changed.notify_all();
                                }];
      }
      std::unique_lock<std::mutex> lock(results->mutex);
      results->changed.wait(lock, [&] { return results->missing == 0; });
      if (results->failed.empty()) library.archive.save(descriptors);
    }
  }
  if (!results->failed.empty())
    user_error(ErrorKind::Runtime, "metal: cannot make a pipeline of kernel ", results->failed,
               ": ", results->message);
  library.pipelines.merge(results->pipelines);
}

std::vector<std::shared_ptr<runtime::Program>> Compiler::compile(
    std::span<const runtime::KernelSource> sources) {
  queue_.require_own_process();
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::shared_ptr<runtime::Program>> programs;
  while (!sources.empty()) {
    RUNE_CHECK(!sources[0].text.empty(), "kernel ", sources[0].name, " has no source");
    size_t count = 1;
    while (count < sources.size() && sources[count].text.empty()) ++count;
    const auto kernels = sources.first(count);
    Library& library = library_of(kernels[0].text, kernels[0].name);
    make_pipelines(library, kernels);
    for (const runtime::KernelSource& source : kernels) {
      const id<MTLComputePipelineState> pipeline = library.pipelines.at(source.name);
      check_limits(source, pipeline, simd_width_);
      programs.push_back(std::make_shared<Program>(source, library.text, pipeline, queue_,
                                                   allocator_, num_cores_));
    }
    sources = sources.subspan(count);
  }
  return programs;
}

}  // namespace rune::metal
