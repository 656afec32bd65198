// The command queue. It encodes launches into command buffers and tracks which buffers have run.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "metal/objects.h"
#include "runtime/fork_check.h"

namespace rune::metal {

// An allocation. The allocator, its cache and the command buffers that use it keep it alive.
struct Block {
  Block() = default;
  Block(const Block&) = delete;
  ~Block() {
    if (counter) *counter -= bytes;
  }
  id<MTLBuffer> buffer;
  size_t bytes = 0;                              // of the whole buffer
  std::shared_ptr<std::atomic<size_t>> counter;  // sum of `bytes` of all blocks; may be null
  // The queue's mutex guards the next two: the number of the last command buffer that uses the
  // block, and the error because of which its contents were not computed (null if there was none).
  uint64_t last_use = 0;
  std::shared_ptr<const std::string> error;
};

// The part of a block that a launch accesses.
struct Binding {
  std::shared_ptr<Block> block;
  size_t offset = 0;
  size_t bytes = 0;
  bool is_written = false;
};

// A launch of a compiled kernel. Its first `direct` buffers have a slot each. If there are more
// buffers, the next slot holds an array of their addresses. The last slot holds the variables.
struct Dispatch {
  std::shared_ptr<const std::string> name, source;
  size_t direct = 0;
  id<MTLComputePipelineState> pipeline;
  NSUInteger grid = 1;      // threadgroups
  NSUInteger local = 1;     // threads of each
  bool is_free = false;     // threadgroups may have any size
  double estimated_ns = 0;  // on the whole GPU
};

// Command buffers are numbered from 1, in the order in which they are committed and run. At most 16
// are in flight: a launch that needs a further one waits. After an error of the GPU, a launch waits
// until none is in flight, and a new MTLCommandQueue then replaces the old one. Thread-safe.
class Queue {
 public:
  // Throws UserError(Runtime) if the device cannot create a queue.
  explicit Queue(id<MTLDevice> device);
  ~Queue();
  // Waits for all commands and ignores errors. Call it while the commands' pipelines exist.
  void finish() noexcept;

  // Whether this process was forked from the one that made the queue. In a forked process nothing
  // can be run or waited for, and mutexes of the parent's other threads may be locked for ever.
  // require_own_process, launch, synchronize and wait_for throw UserError(Runtime) there.
  bool is_forked() const { return fork_.is_child(); }
  void require_own_process() const;

  // Adds a launch to the open command buffer. Commits the buffer when its launches, bytes or
  // estimated time exceed a limit, because the system kills a command buffer that takes seconds.
  void launch(const Dispatch& dispatch, std::span<const Binding> bindings,
              std::span<const int64_t> vars);

  // Commits the open command buffer and waits for all command buffers. Throws UserError(Runtime)
  // with the first error since the last call.
  void synchronize();
  // Waits until the command buffers that use the block have run. With `to_read`, throws
  // UserError(Runtime) if the block's contents were not computed because of an error.
  void wait_for(const Block& block, bool to_read);
  // Waits until the oldest command buffer in flight has run, which frees the blocks that nothing
  // else holds. If none is in flight, commits the open one. Returns false if there is none at all.
  bool wait_for_oldest();
  // Clears the error of the block's contents. No launch may use the block.
  void reset(Block& block);
  // Whether no launch uses the block any more.
  bool is_idle(const Block& block) const;

 private:
  struct Batch;
  struct Shared;  // shared with completion handlers, which may outlive the queue
  void open_locked(std::unique_lock<std::mutex>& lock, const std::string& kernel);
  void commit_locked();
  void wait_locked(std::unique_lock<std::mutex>& lock, uint64_t number);

  const runtime::ForkCheck fork_;
  const id<MTLDevice> device_;
  id<MTLCommandQueue> queue_;
  std::shared_ptr<Shared> shared_;
  std::unique_ptr<Batch> batch_;
};

}  // namespace rune::metal
