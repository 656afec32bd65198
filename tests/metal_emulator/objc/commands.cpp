// Queues, command buffers and encoders.
#include "metal.h"

namespace rune::metal_emulator {

using namespace objc;

namespace {

void queue_set_label(Queue*, Selector*, Object*) {}

void commands_set_label(CommandBuffer* self, Selector*, Object* label) {
  self->label = text_of(label);
}

Object* queue_new_commands(Queue* self, Selector*) {
  if (injection().lost) return nullptr;
  self->slots->take();
  auto* commands = make<CommandBuffer>(commands_class);
  commands->queue = self;
  commands->slots = self->slots;
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
  record(self->label);
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

void dispatch(Encoder* self, Size grid, Size local, Size threads_of_grid) {
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
  for (const auto& [index, argument] : self->arguments)
    if (argument.buffer && argument.buffer->label.empty()) ++injection().unlabelled;
  Dispatch next{self->pipeline, self->arguments, self->resources, {}, self->commands->interval};
  next.launch.grid = {unsigned(grid.width), unsigned(grid.height), unsigned(grid.depth)};
  next.launch.local = {unsigned(local.width), unsigned(local.height), unsigned(local.depth)};
  next.launch.threads = {unsigned(threads_of_grid.width), unsigned(threads_of_grid.height),
                         unsigned(threads_of_grid.depth)};
  self->commands->dispatches.push_back(std::move(next));
}

void encoder_dispatch_groups(Encoder* self, Selector*, Size grid, Size local) {
  dispatch(self, grid, local, {});
}

void encoder_dispatch_threads(Encoder* self, Selector*, Size threads, Size local) {
  const auto groups = [](unsigned long n, unsigned long size) {
    return size ? (n + size - 1) / size : 0;
  };
  if (std::max({threads.width, threads.height, threads.depth}) > UINT32_MAX)
    invalid("a grid of more than 4294967295 threads along a dimension");
  ++injection().free_dispatches;
  dispatch(self,
           {groups(threads.width, local.width), groups(threads.height, local.height),
            groups(threads.depth, local.depth)},
           local, threads);
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

}  // namespace

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
     method("error", commands_error), method("setLabel:", commands_set_label)},
    destroy<CommandBuffer>};
Class encoder_class{nullptr,
                    "MTLComputeCommandEncoder",
                    nullptr,
                    {method("setComputePipelineState:", encoder_set_pipeline),
                     method("setBuffer:offset:atIndex:", encoder_set_buffer),
                     method("setBytes:length:atIndex:", encoder_set_bytes),
                     method("dispatchThreadgroups:threadsPerThreadgroup:", encoder_dispatch_groups),
                     method("dispatchThreads:threadsPerThreadgroup:", encoder_dispatch_threads),
                     method("memoryBarrierWithScope:", encoder_barrier),
                     method("useResource:usage:", encoder_use), method("endEncoding", encoder_end)},
                    destroy<Encoder>};

CommandBuffer::~CommandBuffer() {
  for (void* handler : handlers) _Block_release(handler);
  if (!is_committed && slots) slots->give_back();
}
Encoder::~Encoder() {
  if (!has_ended) ++injection().violations;
}

}  // namespace rune::metal_emulator
