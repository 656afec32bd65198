// The device: what it can do, and what it makes.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>

#include "../msl/msl.h"
#include "metal.h"

namespace rune::metal_emulator {

using namespace objc;

namespace {

constexpr size_t kMaxBufferBytes = size_t{1} << 32;
constexpr size_t kGap = 16384;  // behind each buffer, so that no other one lies there

struct Device : Object {};

Object* device_name(Object*, Selector*) {
  return objc_autorelease(
      make_string(injection().paravirtual ? "Apple Paravirtual device" : "Metal emulator"));
}
unsigned long device_max_buffer(Object*, Selector*) {
  return kMaxBufferBytes;
}
unsigned long device_working_set(Object*, Selector*) {
  return static_cast<unsigned long>(injection().working_set);
}
unsigned long device_threadgroup_bytes(Object*, Selector*) {
  return gpu_emulator::kMaxThreadgroupBytes;
}
Size device_max_threads(Object*, Selector*) {
  return {gpu_emulator::kMaxThreads, gpu_emulator::kMaxThreads, gpu_emulator::kMaxThreads};
}
signed char device_family(Object*, Selector*, long) {
  return !injection().old_gpu && !injection().paravirtual;
}

void device_set_concurrency(Object*, Selector*, signed char) {}

Object* device_new_buffer(Object*, Selector*, unsigned long length, unsigned long) {
  if (length == 0 || length > kMaxBufferBytes)
    invalid("a buffer of " + std::to_string(length) + " bytes");
  if (take(injection().fail_allocations)) return nullptr;
  auto* buffer = make<Buffer>(buffer_class);
  const size_t bytes = (length + kGap - 1) / kGap * kGap + kGap;
  buffer->memory = static_cast<char*>(std::aligned_alloc(kGap, bytes));
  buffer->length = length;
  std::memset(buffer->memory, 0xfe, length);
  const long held = injection().buffer_bytes += static_cast<long>(length);
  for (long peak = injection().peak_bytes; peak < held;)
    if (injection().peak_bytes.compare_exchange_weak(peak, held)) break;
  set_living(buffer, true);
  return buffer;
}

Object* device_adopt(Object*, Selector*, char* memory, unsigned long length, unsigned long,
                     void* deallocator) {
  const auto page = static_cast<unsigned long>(getpagesize());
  if (reinterpret_cast<uintptr_t>(memory) % page || length == 0 || length % page || deallocator)
    invalid("newBufferWithBytesNoCopy of memory that is not whole pages");
  if (take(injection().fail_allocations)) return nullptr;
  auto* buffer = make<Buffer>(buffer_class);
  if (!injection().empty_adoptions) {
    buffer->memory = memory;
    buffer->length = length;
  }
  buffer->is_owner = false;
  ++injection().adopted;
  set_living(buffer, true);
  return buffer;
}

Object* device_new_library(Object*, Selector*, Object* source, CompileOptions* options,
                           Object** error) {
  const std::string text = text_of(source);
  if (take(injection().fail_libraries))
    return fail(error, "program_source:1:1: error: injected by the test"), nullptr;
  if (!options || options->fast_math)
    return fail(error, "the emulator has safe math only"), nullptr;
  if (options->fast_functions)
    return fail(error, "the emulator has precise functions only"), nullptr;
  if ((injection().old_gpu || injection().paravirtual) && text.find("simd") != std::string::npos)
    return fail(error, "SIMD-group operations are not supported"), nullptr;
  if (options->language_version < 0x30001 && text.find("bfloat") != std::string::npos)
    return fail(error, "unknown type name 'bfloat' (before Metal 3.1)"), nullptr;
  try {
    // 0x30002 is version 3.2, which __METAL_VERSION__ calls 320.
    const unsigned long version = options->language_version;
    auto code = gpu_emulator::Library::compile(
        msl_emulator::language(RUNE_MSL_INCLUDE,
                               static_cast<int>((version >> 16) * 100 + (version & 0xffff) * 10)),
        text, RUNE_MSL_CACHE);
    auto* library = make<Library>(library_class);
    library->code = std::move(code);
    library->text = text;
    return library;
  } catch (const std::exception& e) {
    fail(error, e.what());
    return nullptr;
  }
}

Object* device_new_pipeline(Object*, Selector*, Function* function, Object** error) {
  if (!function) invalid("a pipeline without a function");
  const long at_once = ++injection().being_made;
  for (long most = injection().made_at_once; most < at_once;)
    if (injection().made_at_once.compare_exchange_weak(most, at_once)) break;
  std::this_thread::sleep_for(std::chrono::microseconds(injection().pipeline_us));
  --injection().being_made;
  if (function->kernel->threadgroup_bytes() > gpu_emulator::kMaxThreadgroupBytes) {
    fail(error,
         "Threadgroup memory size (" + std::to_string(function->kernel->threadgroup_bytes()) +
             ") exceeds the maximum (" + std::to_string(gpu_emulator::kMaxThreadgroupBytes) + ")");
    return nullptr;
  }
  auto* pipeline = make<Pipeline>(pipeline_class);
  pipeline->code = function->code;
  pipeline->kernel = function->kernel;
  pipeline->max_threads =
      std::min(static_cast<unsigned long>(injection().max_threads),
               static_cast<unsigned long>(pipeline->kernel->signature.max_threads));
  set_living(pipeline, true);
  return pipeline;
}

Object* device_new_archive(Object*, Selector*, ArchiveDescriptor* descriptor, Object** error) {
  if (injection().paravirtual) invalid("failed assertion `Target device architecture is nil'");
  std::set<std::string> keys;
  if (descriptor->url.get()) {
    std::ifstream in(path_of(descriptor->url.get()));
    std::string line;
    if (!std::getline(in, line) || line != kArchiveHead)
      return fail(error, "the file is no archive"), nullptr;
    while (std::getline(in, line)) keys.insert(line);
  }
  auto* archive = make<Archive>(archive_class);
  archive->keys = std::move(keys);
  return archive;
}

Object* device_new_pipeline_by_descriptor(Object* self, Selector* selector,
                                          PipelineDescriptor* descriptor, unsigned long, Object**,
                                          Object** error) {
  if (descriptor->archives.get())
    for (const Object* archive : items_of(descriptor->archives.get()))
      injection().from_archives +=
          static_cast<const Archive*>(archive)->keys.count(descriptor->function->key);
  return device_new_pipeline(self, selector, descriptor->function.get(), error);
}

// The handler is called on another thread.
void device_make_pipeline(Object* self, Selector* selector, PipelineDescriptor* descriptor,
                          unsigned long options, void* handler) {
  std::thread([self = Ref<Object>(self), selector, descriptor = Ref<PipelineDescriptor>(descriptor),
               options, handler = _Block_copy(handler)] {
    struct Head {
      void* isa;
      int flags, reserved;
      void (*invoke)(void*, Object*, Object*, Object*);
    };
    void* const pool = objc_autoreleasePoolPush();
    Object* error = nullptr;
    Object* const pipeline = device_new_pipeline_by_descriptor(
        self.get(), selector, descriptor.get(), options, nullptr, &error);
    static_cast<Head*>(handler)->invoke(handler, pipeline, nullptr, error);
    objc_release(pipeline);
    _Block_release(handler);
    objc_autoreleasePoolPop(pool);
  }).detach();
}

Object* device_new_queue_of(Object*, Selector*, unsigned long most) {
  ++injection().queues;
  auto* queue = make<Queue>(queue_class);
  queue->slots = std::make_shared<Slots>(static_cast<long>(most));
  return queue;
}

Object* device_new_queue(Object* self, Selector* selector) {
  return device_new_queue_of(self, selector, 64);
}

Class device_class{nullptr,
                   "MTLDevice",
                   nullptr,
                   {method("name", device_name), method("maxBufferLength", device_max_buffer),
                    method("recommendedMaxWorkingSetSize", device_working_set),
                    method("maxThreadgroupMemoryLength", device_threadgroup_bytes),
                    method("maxThreadsPerThreadgroup", device_max_threads),
                    method("supportsFamily:", device_family),
                    method("setShouldMaximizeConcurrentCompilation:", device_set_concurrency),
                    method("newBufferWithLength:options:", device_new_buffer),
                    method("newBufferWithBytesNoCopy:length:options:deallocator:", device_adopt),
                    method("newLibraryWithSource:options:error:", device_new_library),
                    method("newComputePipelineStateWithFunction:error:", device_new_pipeline),
                    method("newBinaryArchiveWithDescriptor:error:", device_new_archive),
                    method("newComputePipelineStateWithDescriptor:options:reflection:error:",
                           device_new_pipeline_by_descriptor),
                    method("newComputePipelineStateWithDescriptor:options:completionHandler:",
                           device_make_pipeline),
                    method("newCommandQueueWithMaxCommandBufferCount:", device_new_queue_of),
                    method("newCommandQueue", device_new_queue)},
                   destroy<Device>};

}  // namespace

extern "C" {
Object* MTLCreateSystemDefaultDevice() {
  return injection().no_device ? nullptr : make<Device>(device_class);
}

Object* MTLCopyAllDevices() {
  return make_array({});
}
}

}  // namespace rune::metal_emulator
