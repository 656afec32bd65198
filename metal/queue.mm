#include "metal/queue.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"

namespace rune::metal {

namespace {

// A command buffer is committed when it has this much work. That is enough to hide the cost of a
// commit, and so little that the GPU starts early and stays far from the watchdog's limit.
constexpr size_t kMaxLaunches = 40;
constexpr size_t kMaxBytes = size_t{64} << 20;
constexpr double kMaxNs = 20e6;
// The most command buffers in flight (committed and not complete): enough to keep the GPU busy.
constexpr uint64_t kMaxInFlight = 16;
// The most command buffers that Metal makes at a time. If more are wanted, Metal waits until one is
// complete and its completion handlers have returned. The queue must avoid that, because it would
// wait with a mutex that the handlers need.
constexpr NSUInteger kMaxCommandBuffers = 64;
static_assert(kMaxInFlight + 2 < kMaxCommandBuffers);

NS_RETURNS_RETAINED id<MTLCommandQueue> make_queue(id<MTLDevice> device) {
  @autoreleasepool {
    const id<MTLCommandQueue> queue =
        [device newCommandQueueWithMaxCommandBufferCount:kMaxCommandBuffers];
    queue.label = @"rune_jit";
    return queue;
  }
}

}  // namespace

// An open command buffer, and the buffers that must live until it has run.
struct Queue::Batch {
  id<MTLCommandBuffer> commands;
  id<MTLComputeCommandEncoder> encoder;
  std::vector<Binding> bindings;
  size_t first_unordered = 0;  // the first one after the last barrier
  std::vector<std::shared_ptr<const std::string>> kernels, sources;
  size_t bytes = 0;
  double estimated_ns = 0;

  // Whether a launch must not overlap those since the last barrier.
  bool conflicts(std::span<const Binding> launch) const {
    for (size_t i = first_unordered; i < bindings.size(); ++i)
      for (const Binding& next : launch) {
        const Binding& before = bindings[i];
        if (before.block == next.block && (before.is_written || next.is_written) &&
            before.offset < next.offset + next.bytes && next.offset < before.offset + before.bytes)
          return true;
      }
    return false;
  }
};

struct Queue::Shared {
  // What a command buffer's completion handler reports.
  struct Finished {
    std::string failure;  // empty if there was none
    std::vector<Binding> bindings;
  };

  std::mutex mutex;
  std::condition_variable changed;
  uint64_t committed = 0;
  uint64_t completed = 0;                    // this command buffer and all before it are complete
  std::map<uint64_t, Finished> finished;     // later command buffers that have run
  bool has_failed = false;                   // whether one of the present MTLCommandQueue failed
  std::shared_ptr<const std::string> error;  // the first since the last synchronize()

  uint64_t in_flight() const { return committed - completed; }

  // Handlers may run out of order. Their reports take effect in the order of the command buffers.
  void complete(uint64_t number, Finished report) {
    const std::lock_guard<std::mutex> lock(mutex);
    finished[number] = std::move(report);
    while (!finished.empty() && finished.begin()->first == completed + 1) {
      complete_locked(finished.begin()->second);
      finished.erase(finished.begin());  // frees its blocks before waiting threads are told
      ++completed;
    }
    changed.notify_all();
  }

 private:
  // Marks the blocks that a failed command buffer should have written, and blocks computed from
  // marked ones, with the error. They must not be read.
  void complete_locked(const Finished& report) {
    std::shared_ptr<const std::string> cause;
    if (!report.failure.empty()) {
      cause = std::make_shared<const std::string>(report.failure);
      if (!error) error = cause;
      has_failed = true;
    }
    for (const Binding& binding : report.bindings)
      if (!cause && !binding.is_written) cause = binding.block->error;
    if (cause)
      for (const Binding& binding : report.bindings)
        if (binding.is_written) binding.block->error = cause;
  }
};

namespace {

std::string list_names(const std::vector<std::shared_ptr<const std::string>>& kernels) {
  constexpr size_t kShown = 4;
  std::string text = kernels.size() == 1 ? "kernel " : "one of the kernels ";
  for (size_t i = 0; i < std::min(kernels.size(), kShown); ++i)
    text += (i ? ", " : "") + *kernels[i];
  if (kernels.size() > kShown) text += concat(" and ", kernels.size() - kShown, " more");
  return text;
}

std::string join(const std::vector<std::shared_ptr<const std::string>>& sources) {
  std::string text;
  for (const auto& source : sources) text += '\n' + *source;
  return text;
}

}  // namespace

Queue::Queue(id<MTLDevice> device)
    : device_(device), queue_(make_queue(device)), shared_(std::make_shared<Shared>()) {
  if (!queue_) user_error(ErrorKind::Runtime, "metal: cannot make a command queue");
}

Queue::~Queue() = default;

void Queue::require_own_process() const {
  if (is_forked())
    user_error(
        ErrorKind::Runtime,
        "metal: cannot use the GPU in a forked process (the parent has opened it)\n"
        "hint: multiprocessing.set_start_method(\"spawn\"), or use the GPU in children alone");
}

void Queue::finish() noexcept {
  if (is_forked()) return;
  try {
    synchronize();
  } catch (...) {  // nobody is left to report it to
  }
}

void Queue::open_locked(std::unique_lock<std::mutex>& lock, const std::string& kernel) {
  // After an error, Metal may ignore all that is committed to the same MTLCommandQueue, so wait
  // until nothing is in flight and make a new one.
  shared_->changed.wait(lock, [&] {
    return batch_ || shared_->in_flight() < (shared_->has_failed ? 1 : kMaxInFlight);
  });
  if (batch_) return;
  if (shared_->has_failed) {
    if (const id<MTLCommandQueue> fresh = make_queue(device_)) queue_ = fresh;
    shared_->has_failed = false;
  }
  auto batch = std::make_unique<Batch>();
  @autoreleasepool {
    // The batch retains the buffers that it uses, so Metal need not retain them again.
    batch->commands = [queue_ commandBufferWithUnretainedReferences];
    // Launches that do not need one another's results run concurrently (see conflicts()). Metal
    // itself keeps the order of command buffers.
    batch->encoder =
        [batch->commands computeCommandEncoderWithDispatchType:MTLDispatchTypeConcurrent];
  }
  if (!batch->commands || !batch->encoder)
    user_error(ErrorKind::Runtime, "metal: cannot launch kernel ", kernel,
               " (the device gives no command buffer; it may be lost)");
  batch_ = std::move(batch);
}

namespace {

void bind(id<MTLComputeCommandEncoder> encoder, size_t direct, std::span<const Binding> bindings,
          std::span<const int64_t> vars) {
  size_t slot = 0;
  for (; slot < direct; ++slot)
    [encoder setBuffer:bindings[slot].block->buffer offset:bindings[slot].offset atIndex:slot];
  std::vector<uint64_t> addresses;
  for (const Binding& binding : bindings.subspan(direct)) {
    addresses.push_back(binding.block->buffer.gpuAddress + binding.offset);
    [encoder useResource:binding.block->buffer
                   usage:binding.is_written ? MTLResourceUsageRead | MTLResourceUsageWrite
                                            : MTLResourceUsageRead];
  }
  if (!addresses.empty())
    [encoder setBytes:addresses.data() length:addresses.size() * sizeof(uint64_t) atIndex:slot++];
  if (!vars.empty()) [encoder setBytes:vars.data() length:vars.size_bytes() atIndex:slot];
}

// Independent threads run in threadgroups as large as the pipeline allows, and the last
// threadgroups may be smaller. Kernels whose threads work together need whole threadgroups of the
// scheduled size.
void dispatch_threads(id<MTLComputeCommandEncoder> encoder, const Dispatch& dispatch) {
  const NSUInteger grid = dispatch.grid, local = dispatch.local;
  if (!dispatch.is_free) {
    [encoder dispatchThreadgroups:MTLSizeMake(grid, 1, 1)
            threadsPerThreadgroup:MTLSizeMake(local, 1, 1)];
    return;
  }
  const NSUInteger most = dispatch.pipeline.maxTotalThreadsPerThreadgroup;
  [encoder dispatchThreads:MTLSizeMake(grid * local, 1, 1)
      threadsPerThreadgroup:MTLSizeMake(std::min(local, most), 1, 1)];
}

}  // namespace

void Queue::launch(const Dispatch& dispatch, std::span<const Binding> bindings,
                   std::span<const int64_t> vars) {
  require_own_process();
  std::unique_lock<std::mutex> lock(shared_->mutex);
  open_locked(lock, *dispatch.name);
  Batch& batch = *batch_;
  @autoreleasepool {
    const id<MTLComputeCommandEncoder> encoder = batch.encoder;
    if (batch.conflicts(bindings)) {
      [encoder memoryBarrierWithScope:MTLBarrierScopeBuffers];
      batch.first_unordered = batch.bindings.size();
    }
    [encoder setComputePipelineState:dispatch.pipeline];
    bind(encoder, dispatch.direct, bindings, vars);
    dispatch_threads(encoder, dispatch);
  }
  for (const Binding& binding : bindings) {
    binding.block->last_use = shared_->committed + 1;
    batch.bytes += binding.bytes;
    batch.bindings.push_back(binding);
  }
  batch.kernels.push_back(dispatch.name);
  if (batch.sources.empty() || batch.sources.back() != dispatch.source)
    batch.sources.push_back(dispatch.source);
  batch.estimated_ns += dispatch.estimated_ns;
  if (batch.kernels.size() >= kMaxLaunches || batch.bytes >= kMaxBytes ||
      batch.estimated_ns >= kMaxNs)
    commit_locked();
}

void Queue::commit_locked() {
  if (!batch_) return;
  const std::unique_ptr<Batch> batch = std::move(batch_);
  const uint64_t number = ++shared_->committed;
  @autoreleasepool {
    [batch->encoder endEncoding];
    // The handler runs on one of Metal's threads, where nothing may be thrown, so the error is kept
    // for synchronize(). The handler keeps the blocks alive until the commands have run.
    const std::shared_ptr<Shared> shared = shared_;
    const auto bindings = std::make_shared<std::vector<Binding>>(std::move(batch->bindings));
    const std::string kernels = list_names(batch->kernels);
    batch->commands.label = to_ns(kernels);
    const auto sources = std::move(batch->sources);
    [batch->commands addCompletedHandler:^(id<MTLCommandBuffer> done) {
      std::string failure;
      if (done.status == MTLCommandBufferStatusError)
        failure = "metal: cannot run " + kernels + " (" + describe(done.error) +
                  "; later launches use a new command queue)" + join(sources);
      shared->complete(number, {failure, std::exchange(*bindings, {})});
    }];
    [batch->commands commit];
  }
}

void Queue::wait_locked(std::unique_lock<std::mutex>& lock, uint64_t number) {
  shared_->changed.wait(lock, [&] { return shared_->completed >= number; });
}

void Queue::synchronize() {
  require_own_process();
  std::unique_lock<std::mutex> lock(shared_->mutex);
  commit_locked();
  wait_locked(lock, shared_->committed);
  if (shared_->error) throw UserError(ErrorKind::Runtime, *std::exchange(shared_->error, {}));
}

void Queue::wait_for(const Block& block, bool to_read) {
  require_own_process();
  std::unique_lock<std::mutex> lock(shared_->mutex);
  if (block.last_use > shared_->committed) commit_locked();
  wait_locked(lock, block.last_use);
  if (!to_read || !block.error) return;
  if (shared_->error == block.error) shared_->error.reset();  // it is reported here
  throw UserError(ErrorKind::Runtime, *block.error);
}

void Queue::reset(Block& block) {
  const std::lock_guard<std::mutex> lock(shared_->mutex);
  block.error.reset();
}

bool Queue::wait_for_oldest() {
  std::unique_lock<std::mutex> lock(shared_->mutex);
  if (shared_->in_flight() == 0) commit_locked();
  if (shared_->in_flight() == 0) return false;
  wait_locked(lock, shared_->completed + 1);
  return true;
}

bool Queue::is_idle(const Block& block) const {
  const std::lock_guard<std::mutex> lock(shared_->mutex);
  return block.last_use <= shared_->completed;
}

}  // namespace rune::metal
