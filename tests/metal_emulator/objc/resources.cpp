// Buffers, libraries, functions, pipelines and archives of them; and what describes them.
#include <cstdlib>
#include <fstream>

#include "metal.h"

namespace rune::metal_emulator {

using namespace objc;

namespace {

void* buffer_contents(Buffer* self, Selector*) {
  return self->memory;
}
unsigned long buffer_length(Buffer* self, Selector*) {
  return self->length;
}
void buffer_set_label(Buffer* self, Selector*, Object* label) {
  self->label = text_of(label);
}
uint64_t buffer_address(Buffer* self, Selector*) {
  return reinterpret_cast<uint64_t>(self->memory);
}

Object* library_new_function(Library* self, Selector*, Object* name) {
  const gpu_emulator::Kernel* kernel = self->code->find(text_of(name));
  if (!kernel) return nullptr;
  auto* function = make<Function>(function_class);
  function->code = self->code;
  function->kernel = kernel;
  function->key = text_of(name) + " " + std::to_string(std::hash<std::string>()(self->text));
  return function;
}

Object* function_name(Function* self, Selector*) {
  return objc_autorelease(make_string(self->kernel->signature.name));
}

unsigned long pipeline_max_threads(Pipeline* self, Selector*) {
  return self->max_threads;
}
unsigned long pipeline_width(Pipeline*, Selector*) {
  return static_cast<unsigned long>(injection().simd_width);
}
unsigned long pipeline_threadgroup_bytes(Pipeline* self, Selector*) {
  return self->kernel->threadgroup_bytes();
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
  if (take(injection().fail_archives)) return fail(error, "the archive cannot be written"), 0;
  for (const std::string& key : self->keys) out << key << "\n";
  if (!out.flush()) fail(error, "the archive cannot be written");
  return static_cast<bool>(out);
}

void options_set_version(CompileOptions* self, Selector*, unsigned long version) {
  self->language_version = version;
}
void options_set_fast(CompileOptions* self, Selector*, signed char fast) {
  self->fast_math = self->fast_functions = fast;
}
void options_set_mode(CompileOptions* self, Selector*, long mode) {
  self->fast_math = mode != 0;
}
void options_set_functions(CompileOptions* self, Selector*, long functions) {
  self->fast_functions = functions == 0;
}

void archive_descriptor_set_url(ArchiveDescriptor* self, Selector*, Object* url) {
  self->url = Ref<Object>(url);
}
void pipeline_descriptor_set_function(PipelineDescriptor* self, Selector*, Function* function) {
  self->function = Ref<Function>(function);
}
void pipeline_descriptor_set_label(PipelineDescriptor*, Selector*, Object*) {}
void pipeline_descriptor_set_archives(PipelineDescriptor* self, Selector*, Object* archives) {
  self->archives = Ref<Object>(archives);
}
}  // namespace

Class buffer_class{nullptr,
                   "MTLBuffer",
                   nullptr,
                   {method("contents", buffer_contents), method("length", buffer_length),
                    method("gpuAddress", buffer_address), method("setLabel:", buffer_set_label)},
                   destroy<Buffer>};
Class library_class{nullptr,
                    "MTLLibrary",
                    nullptr,
                    {method("newFunctionWithName:", library_new_function)},
                    destroy<Library>};
Class function_class{
    nullptr, "MTLFunction", nullptr, {method("name", function_name)}, destroy<Function>};
Class pipeline_class{nullptr,
                     "MTLComputePipelineState",
                     nullptr,
                     {method("maxTotalThreadsPerThreadgroup", pipeline_max_threads),
                      method("threadExecutionWidth", pipeline_width),
                      method("staticThreadgroupMemoryLength", pipeline_threadgroup_bytes)},
                     destroy<Pipeline>};
Class archive_class{nullptr,
                    "MTLBinaryArchive",
                    nullptr,
                    {method("addComputePipelineFunctionsWithDescriptor:error:", archive_add),
                     method("serializeToURL:error:", archive_save)},
                    destroy<Archive>};

namespace {

template <class T, Class& cls>
Object* make_new(Object*, Selector*) {
  return make<T>(cls);
}

Class options_meta{nullptr,
                   "MTLCompileOptions class",
                   nullptr,
                   {method("new", make_new<CompileOptions, _OBJC_CLASS_MTLCompileOptions>)}};
Class archive_descriptor_meta{
    nullptr,
    "MTLBinaryArchiveDescriptor class",
    nullptr,
    {method("new", make_new<ArchiveDescriptor, _OBJC_CLASS_MTLBinaryArchiveDescriptor>)}};
Class pipeline_descriptor_meta{
    nullptr,
    "MTLComputePipelineDescriptor class",
    nullptr,
    {method("new", make_new<PipelineDescriptor, _OBJC_CLASS_MTLComputePipelineDescriptor>)}};

}  // namespace

extern "C" {
long __objc_class_name_MTLCompileOptions = 0;
Class _OBJC_CLASS_MTLCompileOptions{
    &options_meta,
    "MTLCompileOptions",
    nullptr,
    {method("setLanguageVersion:", options_set_version),
     method("setFastMathEnabled:", options_set_fast), method("setMathMode:", options_set_mode),
     method("setMathFloatingPointFunctions:", options_set_functions)},
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
     method("setLabel:", pipeline_descriptor_set_label),
     method("setBinaryArchives:", pipeline_descriptor_set_archives)},
    destroy<PipelineDescriptor>};
}

Buffer::~Buffer() {
  set_living(this, false);
  if (!is_owner) return;
  std::free(memory);
  injection().buffer_bytes -= static_cast<long>(length);
}
Pipeline::~Pipeline() {
  set_living(this, false);
}

}  // namespace rune::metal_emulator
