// Metal's classes for tests, with the checks of Metal's validation layer: where that would end the
// process, a std::logic_error is thrown.
#include "metal.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>

namespace rune::metal_emulator {

using namespace objc;

namespace {

constexpr size_t kMaxBufferBytes = size_t{1} << 32;
constexpr size_t kGap = 16384;  // behind each buffer, so that no other one lies there

[[noreturn]] void invalid(const std::string& message) {
  ++injection().violations;
  throw std::logic_error("Metal validation: " + message);
}

void fail(Object** error, const std::string& message) {
  if (error) *error = objc_autorelease(make_error(message));
}

extern Class buffer_class, library_class, function_class, pipeline_class, queue_class,
    commands_class, encoder_class, archive_class;

// --- MTLDevice
// ---------------------------------------------------------------------------------------

struct Device : Object {};

Object* device_name(Object*, Selector*) {
  return objc_autorelease(make_string("Metal emulator"));
}
unsigned long device_max_buffer(Object*, Selector*) {
  return kMaxBufferBytes;
}
unsigned long device_working_set(Object*, Selector*) {
  return size_t{8} << 30;
}
unsigned long device_threadgroup_bytes(Object*, Selector*) {
  return msl_emulator::kMaxThreadgroupBytes;
}
Size device_max_threads(Object*, Selector*) {
  return {msl_emulator::kMaxThreads, msl_emulator::kMaxThreads, msl_emulator::kMaxThreads};
}
signed char device_family(Object*, Selector*, long) {
  return 1;
}

Object* device_new_buffer(Object*, Selector*, unsigned long length, unsigned long) {
  if (length == 0 || length > kMaxBufferBytes)
    invalid("a buffer of " + std::to_string(length) + " bytes");
  if (take(injection().fail_allocations)) return nullptr;
  auto* buffer = make<Buffer>(buffer_class);
  const size_t bytes = (length + kGap - 1) / kGap * kGap + kGap;
  buffer->memory = static_cast<char*>(std::aligned_alloc(kGap, bytes));
  buffer->length = length;
  std::memset(buffer->memory, 0xfe, length);
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
  buffer->memory = memory;
  buffer->length = length;
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
  if (options->language_version < 0x30001 && text.find("bfloat") != std::string::npos)
    return fail(error, "unknown type name 'bfloat' (before Metal 3.1)"), nullptr;
  try {
    auto code = msl_emulator::Library::compile(text, RUNE_MSL_INCLUDE, RUNE_MSL_CACHE);
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
  if (function->kernel->threadgroup_bytes() > msl_emulator::kMaxThreadgroupBytes) {
    fail(error,
         "Threadgroup memory size (" + std::to_string(function->kernel->threadgroup_bytes()) +
             ") exceeds the maximum (" + std::to_string(msl_emulator::kMaxThreadgroupBytes) + ")");
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

constexpr const char* kArchiveHead = "archive of the Metal emulator";

Object* device_new_archive(Object*, Selector*, ArchiveDescriptor* descriptor, Object** error) {
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

signed char archive_add(Archive* self, Selector*, PipelineDescriptor* descriptor, Object**) {
  if (!descriptor->function.get()) invalid("a pipeline without a function");
  self->keys.insert(descriptor->function->key);
  ++injection().archived;
  return 1;
}

signed char archive_save(Archive* self, Selector*, Object* url, Object** error) {
  std::ofstream out(path_of(url));
  out << kArchiveHead << "\n";
  for (const std::string& key : self->keys) out << key << "\n";
  if (!out.flush()) fail(error, "the archive cannot be written");
  return static_cast<bool>(out);
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

Object* device_new_queue(Object*, Selector*) {
  return make<Queue>(queue_class);
}

// --- Resources
// ---------------------------------------------------------------------------------------

void* buffer_contents(Buffer* self, Selector*) {
  return self->memory;
}
unsigned long buffer_length(Buffer* self, Selector*) {
  return self->length;
}
uint64_t buffer_address(Buffer* self, Selector*) {
  return reinterpret_cast<uint64_t>(self->memory);
}

Object* library_new_function(Library* self, Selector*, Object* name) {
  const msl_emulator::Kernel* kernel = self->code->find(text_of(name));
  if (!kernel) return nullptr;
  auto* function = make<Function>(function_class);
  function->code = self->code;
  function->kernel = kernel;
  function->key = text_of(name) + " " + std::to_string(std::hash<std::string>()(self->text));
  return function;
}

unsigned long pipeline_max_threads(Pipeline* self, Selector*) {
  return self->max_threads;
}
unsigned long pipeline_width(Pipeline*, Selector*) {
  return msl_emulator::kSimdWidth;
}
unsigned long pipeline_threadgroup_bytes(Pipeline* self, Selector*) {
  return self->kernel->threadgroup_bytes();
}

// --- Commands
// ----------------------------------------------------------------------------------------

void queue_set_label(Queue*, Selector*, Object*) {}

Object* queue_new_commands(Queue* self, Selector*) {
  if (injection().lost) return nullptr;
  auto* commands = make<CommandBuffer>(commands_class);
  commands->queue = self;
  return objc_autorelease(commands);
}

Object* commands_encoder_of_type(CommandBuffer* self, Selector*, unsigned long type) {
  if (self->is_committed) invalid("an encoder of a committed command buffer");
  if (self->open) invalid("a second encoder before the first one's endEncoding");
  auto* encoder = make<Encoder>(encoder_class);
  encoder->commands = Ref<CommandBuffer>(self);
  encoder->is_concurrent = type == 1;
  ++self->interval;
  self->open = encoder;
  return objc_autorelease(encoder);
}

Object* commands_encoder(CommandBuffer* self, Selector* selector) {
  return commands_encoder_of_type(self, selector, 0);
}

void commands_add_handler(CommandBuffer* self, Selector*, void* block) {
  if (self->is_committed) invalid("a completion handler for a committed command buffer");
  self->handlers.push_back(_Block_copy(block));
}

void commands_commit(CommandBuffer* self, Selector*) {
  if (self->is_committed) invalid("a command buffer is committed twice");
  if (self->open) invalid("a command buffer is committed before endEncoding");
  self->is_committed = true;
  ++injection().committed;
  self->queue->commit(self);
}

void commands_wait(CommandBuffer* self, Selector*) {
  std::unique_lock<std::mutex> lock(self->mutex);
  self->changed.wait(lock, [&] { return self->status >= 4; });
}

unsigned long commands_status(CommandBuffer* self, Selector*) {
  const std::lock_guard<std::mutex> lock(self->mutex);
  return self->status;
}
Object* commands_error(CommandBuffer* self, Selector*) {
  const std::lock_guard<std::mutex> lock(self->mutex);
  return self->error.get();
}

void check_open(const Encoder* self) {
  if (self->has_ended) invalid("an encoder is used after endEncoding");
}

void check_index(unsigned long index) {
  if (index > 30) invalid("buffer index " + std::to_string(index) + " (at most 30)");
}

void encoder_set_pipeline(Encoder* self, Selector*, Pipeline* pipeline) {
  check_open(self);
  if (!pipeline) invalid("no pipeline");
  self->pipeline = pipeline;
}

void encoder_set_buffer(Encoder* self, Selector*, Buffer* buffer, unsigned long offset,
                        unsigned long index) {
  check_open(self);
  check_index(index);
  if (buffer && offset >= buffer->length)
    invalid("offset " + std::to_string(offset) + " in a buffer of " +
            std::to_string(buffer->length) + " bytes");
  if (buffer)
    self->arguments[index] = {buffer, offset, {}};
  else
    self->arguments.erase(index);
}

void encoder_set_bytes(Encoder* self, Selector*, const char* bytes, unsigned long length,
                       unsigned long index) {
  check_open(self);
  check_index(index);
  if (length == 0 || length > 4096)
    invalid("setBytes of " + std::to_string(length) + " bytes (at most 4096)");
  self->arguments[index] = {nullptr, 0, std::vector<char>(bytes, bytes + length)};
}

void encoder_dispatch(Encoder* self, Selector*, Size grid, Size local) {
  check_open(self);
  if (!self->pipeline) invalid("a dispatch without a pipeline");
  const unsigned long threads = local.width * local.height * local.depth;
  if (threads == 0 || threads > self->pipeline->max_threads)
    invalid(std::to_string(threads) + " threads per threadgroup (1 to " +
            std::to_string(self->pipeline->max_threads) + ")");
  if (grid.width * grid.height * grid.depth == 0) invalid("an empty grid");
  for (const int index : self->pipeline->kernel->signature.buffers)
    if (!self->arguments.count(static_cast<size_t>(index)))
      invalid("nothing is bound at buffer index " + std::to_string(index) + " of " +
              self->pipeline->kernel->signature.name);
  if (!self->is_concurrent) ++self->commands->interval;
  Dispatch dispatch{self->pipeline, self->arguments, self->resources, {}, self->commands->interval};
  dispatch.launch.grid = {unsigned(grid.width), unsigned(grid.height), unsigned(grid.depth)};
  dispatch.launch.local = {unsigned(local.width), unsigned(local.height), unsigned(local.depth)};
  self->commands->dispatches.push_back(std::move(dispatch));
}

void encoder_barrier(Encoder* self, Selector*, unsigned long scope) {
  check_open(self);
  if (!(scope & 1)) invalid("a barrier that is not for buffers");
  ++injection().barriers;
  ++self->commands->interval;
}

void encoder_use(Encoder* self, Selector*, Buffer* buffer, unsigned long usage) {
  check_open(self);
  if (!buffer || !(usage & 3)) invalid("useResource without a resource or a usage");
  self->resources.push_back(buffer);
}

void encoder_end(Encoder* self, Selector*) {
  check_open(self);
  self->has_ended = true;
  self->commands->open = nullptr;
}

// --- MTLCompileOptions
// -------------------------------------------------------------------------------

extern Class options_meta;
Object* options_new(Object*, Selector*);
Object* options_init(Object* self, Selector*) {
  return self;
}
void options_set_version(CompileOptions* self, Selector*, unsigned long version) {
  self->language_version = version;
}
void options_set_fast(CompileOptions* self, Selector*, signed char fast) {
  self->fast_math = fast;
}
void options_set_mode(CompileOptions* self, Selector*, long mode) {
  self->math_mode = mode;
  self->fast_math = mode != 0;
}

Class device_class{nullptr,
                   "MTLDevice",
                   nullptr,
                   {method("name", device_name), method("maxBufferLength", device_max_buffer),
                    method("recommendedMaxWorkingSetSize", device_working_set),
                    method("maxThreadgroupMemoryLength", device_threadgroup_bytes),
                    method("maxThreadsPerThreadgroup", device_max_threads),
                    method("supportsFamily:", device_family),
                    method("newBufferWithLength:options:", device_new_buffer),
                    method("newBufferWithBytesNoCopy:length:options:deallocator:", device_adopt),
                    method("newLibraryWithSource:options:error:", device_new_library),
                    method("newComputePipelineStateWithFunction:error:", device_new_pipeline),
                    method("newBinaryArchiveWithDescriptor:error:", device_new_archive),
                    method("newComputePipelineStateWithDescriptor:options:reflection:error:",
                           device_new_pipeline_by_descriptor),
                    method("newCommandQueue", device_new_queue)},
                   destroy<Device>};
Class buffer_class{nullptr,
                   "MTLBuffer",
                   nullptr,
                   {method("contents", buffer_contents), method("length", buffer_length),
                    method("gpuAddress", buffer_address)},
                   destroy<Buffer>};
Class library_class{nullptr,
                    "MTLLibrary",
                    nullptr,
                    {method("newFunctionWithName:", library_new_function)},
                    destroy<Library>};
Class function_class{nullptr, "MTLFunction", nullptr, {}, destroy<Function>};
Class pipeline_class{nullptr,
                     "MTLComputePipelineState",
                     nullptr,
                     {method("maxTotalThreadsPerThreadgroup", pipeline_max_threads),
                      method("threadExecutionWidth", pipeline_width),
                      method("staticThreadgroupMemoryLength", pipeline_threadgroup_bytes)},
                     destroy<Pipeline>};
Class queue_class{nullptr,
                  "MTLCommandQueue",
                  nullptr,
                  {method("commandBufferWithUnretainedReferences", queue_new_commands),
                   method("setLabel:", queue_set_label)},
                  destroy<Queue>};
Class commands_class{
    nullptr,
    "MTLCommandBuffer",
    nullptr,
    {method("computeCommandEncoder", commands_encoder),
     method("computeCommandEncoderWithDispatchType:", commands_encoder_of_type),
     method("addCompletedHandler:", commands_add_handler), method("commit", commands_commit),
     method("waitUntilCompleted", commands_wait), method("status", commands_status),
     method("error", commands_error)},
    destroy<CommandBuffer>};
Class encoder_class{nullptr,
                    "MTLComputeCommandEncoder",
                    nullptr,
                    {method("setComputePipelineState:", encoder_set_pipeline),
                     method("setBuffer:offset:atIndex:", encoder_set_buffer),
                     method("setBytes:length:atIndex:", encoder_set_bytes),
                     method("dispatchThreadgroups:threadsPerThreadgroup:", encoder_dispatch),
                     method("memoryBarrierWithScope:", encoder_barrier),
                     method("useResource:usage:", encoder_use), method("endEncoding", encoder_end)},
                    destroy<Encoder>};
Class archive_class{nullptr,
                    "MTLBinaryArchive",
                    nullptr,
                    {method("addComputePipelineFunctionsWithDescriptor:error:", archive_add),
                     method("serializeToURL:error:", archive_save)},
                    destroy<Archive>};

// --- Descriptors
// -------------------------------------------------------------------------------------

Object* new_archive_descriptor(Object*, Selector*);
Object* new_pipeline_descriptor(Object*, Selector*);
void archive_descriptor_set_url(ArchiveDescriptor* self, Selector*, Object* url) {
  self->url = Ref<Object>(url);
}
void pipeline_descriptor_set_function(PipelineDescriptor* self, Selector*, Function* function) {
  self->function = Ref<Function>(function);
}
void pipeline_descriptor_set_archives(PipelineDescriptor* self, Selector*, Object* archives) {
  self->archives = Ref<Object>(archives);
}
Class archive_descriptor_meta{
    nullptr, "MTLBinaryArchiveDescriptor class", nullptr, {method("new", new_archive_descriptor)}};
Class pipeline_descriptor_meta{nullptr,
                               "MTLComputePipelineDescriptor class",
                               nullptr,
                               {method("new", new_pipeline_descriptor)}};
Class options_meta{nullptr,
                   "MTLCompileOptions class",
                   nullptr,
                   {method("new", options_new), method("alloc", options_new)}};

}  // namespace

extern "C" {
long __objc_class_name_MTLCompileOptions = 0;
Class _OBJC_CLASS_MTLCompileOptions{
    &options_meta,
    "MTLCompileOptions",
    nullptr,
    {method("init", options_init), method("setLanguageVersion:", options_set_version),
     method("setFastMathEnabled:", options_set_fast), method("setMathMode:", options_set_mode)},
    destroy<CompileOptions>};

long __objc_class_name_MTLBinaryArchiveDescriptor = 0;
Class _OBJC_CLASS_MTLBinaryArchiveDescriptor{&archive_descriptor_meta,
                                             "MTLBinaryArchiveDescriptor",
                                             nullptr,
                                             {method("setUrl:", archive_descriptor_set_url)},
                                             destroy<ArchiveDescriptor>};
long __objc_class_name_MTLComputePipelineDescriptor = 0;
Class _OBJC_CLASS_MTLComputePipelineDescriptor{
    &pipeline_descriptor_meta,
    "MTLComputePipelineDescriptor",
    nullptr,
    {method("setComputeFunction:", pipeline_descriptor_set_function),
     method("setBinaryArchives:", pipeline_descriptor_set_archives)},
    destroy<PipelineDescriptor>};

Object* MTLCreateSystemDefaultDevice() {
  return injection().no_device ? nullptr : make<Device>(device_class);
}

Object* MTLCopyAllDevices() {
  return make_array({});
}

// --- For tests
// ---------------------------------------------------------------------------------------

// Sets a fault or limit by its name; see Injection. 0 for a name that does not exist.
__attribute__((visibility("default"))) int rune_metal_emulator_inject(const char* what,
                                                                      long value) {
  Injection& all = injection();
  const std::map<std::string, std::atomic<long>*> faults = {
      {"no_device", &all.no_device},
      {"fail_allocations", &all.fail_allocations},
      {"lost", &all.lost},
      {"fail_command_buffers", &all.fail_command_buffers},
      {"fail_libraries", &all.fail_libraries},
      {"latency_us", &all.latency_us},
      {"max_threads", &all.max_threads}};
  const auto found = faults.find(what);
  if (found == faults.end()) return 0;
  *found->second = value;
  return 1;
}

// Living objects of a class, or an event's count so far: committed, launched, barriers, adopted
// (buffers of the host's memory), archived and from_archives (pipelines), violations. -1 for a
// name that does not exist.
__attribute__((visibility("default"))) long rune_metal_emulator_count(const char* what) {
  const Injection& all = injection();
  const std::map<std::string, const std::atomic<long>*> counts = {
      {"buffers", &buffer_class.live},
      {"command_buffers", &commands_class.live},
      {"encoders", &encoder_class.live},
      {"libraries", &library_class.live},
      {"pipelines", &pipeline_class.live},
      {"functions", &function_class.live},
      {"options", &_OBJC_CLASS_MTLCompileOptions.live},
      {"committed", &all.committed},
      {"launched", &all.launched},
      {"barriers", &all.barriers},
      {"adopted", &all.adopted},
      {"archived", &all.archived},
      {"from_archives", &all.from_archives},
      {"archives", &archive_class.live},
      {"violations", &all.violations}};
  const auto found = counts.find(what);
  return found == counts.end() ? -1 : found->second->load();
}
}

namespace {
Object* options_new(Object*, Selector*) {
  return make<CompileOptions>(_OBJC_CLASS_MTLCompileOptions);
}
Object* new_archive_descriptor(Object*, Selector*) {
  return make<ArchiveDescriptor>(_OBJC_CLASS_MTLBinaryArchiveDescriptor);
}
Object* new_pipeline_descriptor(Object*, Selector*) {
  return make<PipelineDescriptor>(_OBJC_CLASS_MTLComputePipelineDescriptor);
}
}  // namespace

Buffer::~Buffer() {
  set_living(this, false);
  if (is_owner) std::free(memory);
}
Pipeline::~Pipeline() {
  set_living(this, false);
}
CommandBuffer::~CommandBuffer() {
  for (void* handler : handlers) _Block_release(handler);
}
Encoder::~Encoder() {
  if (!has_ended) ++injection().violations;
}

}  // namespace rune::metal_emulator
