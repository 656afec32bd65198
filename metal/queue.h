// The command queue. It encodes launches into command buffers and knows which of them have run.
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
  std::shared_ptr<std::atomic<size_t>> counter;  // of the bytes of living blocks; may be null
  // The queue's mutex guards the following: the number of the last command buffer that uses the
  // block, and the error that kept its contents from being computed (null if none did).
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

// A launch of a compiled kernel. Its first `direct` buffers have a slot each. If there are more,
// the next slot is an array with the addresses of the others. The variables take the last slot.
struct Dispatch {
  std::shared_ptr<const std::string> name, source;
  size_t direct = 0;
  id<MTLComputePipelineState> pipeline;
  NSUInteger grid = 1;      // threadgroups
  NSUInteger local = 1;     // threads of each
  bool is_free = false;     // threadgroups may have any size
  double estimated_ns = 0;  // on the whole GPU
};

// Command buffers are numbered from 1 in the order in which they are committed and run. At most 16
// are in flight: a launch waits before it begins another one. After an error of the GPU a launch
// waits until nothing is in flight, then a new MTLCommandQueue takes the place of the old one.
// Thread-safe.
class Queue {
 public:
  // Throws UserError(Runtime) if the device cannot create a queue.
  explicit Queue(id<MTLDevice> device);
  ~Queue();
  // Waits for all commands while their pipelines are alive. Errors are dropped.
  void finish() noexcept;

  // In a process that was forked from the one that made the queue nothing can be run or waited for,
  // and mutexes of the parent's other threads may be locked for ever. The second function throws
  // UserError(Runtime) there; launch, synchronize and wait_for do, too.
  bool is_forked() const { return fork_.is_child(); }
  void require_own_process() const;

  // Adds a launch to the open command buffer. Commits the buffer once its launches, bytes or
  // estimated time exceed a limit; the system kills a command buffer that takes seconds.
  void launch(const Dispatch& dispatch, std::span<const Binding> bindings,
              std::span<const int64_t> vars);

  // Commits the open command buffer and waits for all. Throws UserError(Runtime) with the first
  // error since the last call.
  void synchronize();
  // Waits until the command buffers that use the block have run. With `to_read`, throws
  // UserError(Runtime) if one that should have written the block failed.
  void wait_for(const Block& block, bool to_read);
  // Waits until the oldest command buffer in flight has run, which frees the blocks that nothing
  // else holds. Commits the open one if none is in flight. Returns false if there is none at all.
  bool wait_for_oldest();
  // Forgets an error in computing the block's contents. No launch may use the block.
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
