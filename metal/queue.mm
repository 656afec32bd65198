#include "metal/queue.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace rune::metal {

namespace {

// A command buffer is committed with this much: enough to hide the cost of a commit, little enough
// to start the GPU early and to stay far from the watchdog's limit.
constexpr size_t kMaxLaunches = 40;
constexpr size_t kMaxBytes = size_t{64} << 20;
constexpr double kMaxNs = 20e6;

}  // namespace

// An open command buffer, and the buffers that must live until it has run.
struct Queue::Batch {
  id<MTLCommandBuffer> commands;
  id<MTLComputeCommandEncoder> encoder;
  std::vector<std::shared_ptr<Block>> blocks;
  std::vector<std::shared_ptr<const std::string>> kernels;
  size_t bytes = 0;
  double estimated_ns = 0;
};

struct Queue::Shared {
  std::mutex mutex;
  std::condition_variable changed;
  uint64_t committed = 0;
  uint64_t completed = 0;
  std::string error;  // the first since the last synchronize()

  void complete(uint64_t number, const std::string& failure) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (error.empty()) error = failure;
    completed = std::max(completed, number);
    changed.notify_all();
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

}  // namespace

Queue::Queue(id<MTLDevice> device) : shared_(std::make_shared<Shared>()) {
  @autoreleasepool {
    queue_ = [device newCommandQueue];
    queue_.label = @"rune_jit";
  }
  if (!queue_) user_error(ErrorKind::Runtime, "metal: cannot make a command queue");
}

Queue::~Queue() = default;

void Queue::finish() noexcept {
  try {
    synchronize();
  } catch (...) {  // nobody is left to hear of it
  }
}

void Queue::open_locked() {
  if (batch_) return;
  auto batch = std::make_unique<Batch>();
  @autoreleasepool {
    // The batch holds what it uses: Metal need not retain each buffer again.
    batch->commands = [queue_ commandBufferWithUnretainedReferences];
    batch->encoder = [batch->commands computeCommandEncoder];
  }
  if (!batch->commands || !batch->encoder)
    user_error(ErrorKind::Runtime, "metal: cannot make a command buffer (the device may be lost)");
  batch_ = std::move(batch);
}

void Queue::launch(const Dispatch& dispatch, std::span<const Binding> bindings,
                   std::span<const int64_t> vars) {
  const std::lock_guard<std::mutex> lock(shared_->mutex);
  open_locked();
  Batch& batch = *batch_;
  @autoreleasepool {
    const id<MTLComputeCommandEncoder> encoder = batch.encoder;
    [encoder setComputePipelineState:dispatch.pipeline];
    for (size_t i = 0; i < bindings.size(); ++i)
      [encoder setBuffer:bindings[i].block->buffer offset:bindings[i].offset atIndex:i];
    if (!vars.empty())
      [encoder setBytes:vars.data() length:vars.size_bytes() atIndex:bindings.size()];
    // Kernels count on whole threadgroups. Those of one encoder run one after another where they
    // share buffers: Metal tracks that.
    [encoder dispatchThreadgroups:dispatch.grid threadsPerThreadgroup:dispatch.local];
  }
  for (const Binding& binding : bindings) {
    binding.block->last_use = shared_->committed + 1;
    batch.bytes += binding.block->bytes;
    batch.blocks.push_back(binding.block);
  }
  batch.kernels.push_back(dispatch.name);
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
    // The handler runs on a thread of Metal's, where nothing may be thrown: the error waits for
    // synchronize(). It holds the blocks; the last to go frees them.
    const std::shared_ptr<Shared> shared = shared_;
    const auto blocks =
        std::make_shared<std::vector<std::shared_ptr<Block>>>(std::move(batch->blocks));
    const std::string kernels = list_names(batch->kernels);
    [batch->commands addCompletedHandler:^(id<MTLCommandBuffer> done) {
      std::string failure;
      if (done.status == MTLCommandBufferStatusError)
        failure = "metal: cannot run " + kernels + " (" + describe(done.error) + ")";
      blocks->clear();
      shared->complete(number, failure);
    }];
    [batch->commands commit];
  }
}

void Queue::wait_locked(std::unique_lock<std::mutex>& lock, uint64_t number) {
  shared_->changed.wait(lock, [&] { return shared_->completed >= number; });
}

void Queue::synchronize() {
  std::unique_lock<std::mutex> lock(shared_->mutex);
  commit_locked();
  wait_locked(lock, shared_->committed);
  if (!shared_->error.empty())
    throw UserError(ErrorKind::Runtime, std::exchange(shared_->error, {}));
}

void Queue::wait_for(const Block& block) {
  std::unique_lock<std::mutex> lock(shared_->mutex);
  if (block.last_use > shared_->committed) commit_locked();
  wait_locked(lock, block.last_use);
}

bool Queue::is_idle(const Block& block) const {
  const std::lock_guard<std::mutex> lock(shared_->mutex);
  return block.last_use <= shared_->completed;
}

}  // namespace rune::metal
