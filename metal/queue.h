// The command queue: encodes launches into command buffers and tells when they have run.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "metal/objects.h"

namespace rune::metal {

// One allocation, kept alive by the allocator, by its cache, and by command buffers that use it.
struct Block {
  id<MTLBuffer> buffer;
  size_t bytes = 0;  // of the whole buffer
  // Guarded by the queue's mutex: the number of the last command buffer that uses it, and why its
  // contents are not what was to be computed.
  uint64_t last_use = 0;
  std::shared_ptr<const std::string> error;
};

// A part of a block that a launch accesses.
struct Binding {
  std::shared_ptr<Block> block;
  size_t offset = 0;
  size_t bytes = 0;
  bool is_written = false;
};

// One launch of a compiled kernel. Its first `direct` buffers are bound one by one. If there are
// more, the addresses of the others follow in one array, and the variables come last of all slots.
struct Dispatch {
  std::shared_ptr<const std::string> name, source;
  size_t direct = 0;
  id<MTLComputePipelineState> pipeline;
  MTLSize grid;             // threadgroups
  MTLSize local;            // threads of each
  bool is_free = false;     // threadgroups may be of any size
  double estimated_ns = 0;  // on the whole GPU
};

// Command buffers are numbered from 1 in the order of their commits, in which they run.
// Thread-safe.
class Queue {
 public:
  // Throws UserError(Runtime) if the device gives no queue.
  explicit Queue(id<MTLDevice> device);
  ~Queue();
  // Waits for what runs, as long as its pipelines live; errors are lost.
  void finish() noexcept;

  // Adds a launch to the open command buffer, and commits that when it is large enough: by
  // launches, bytes and estimated time (a command buffer that takes seconds is killed by the
  // system's watchdog).
  void launch(const Dispatch& dispatch, std::span<const Binding> bindings,
              std::span<const int64_t> vars);

  // Commits the open command buffer and waits for all; throws UserError(Runtime) with the first
  // error since the last call.
  void synchronize();
  // Waits until command buffers that use the block have run. With `to_read`, throws
  // UserError(Runtime) if one of those that were to write it failed.
  void wait_for(const Block& block, bool to_read);
  // Forgets what became of the block's contents. Nothing that was launched may use it.
  void reset(Block& block);
  // Whether nothing that was launched still uses the block.
  bool is_idle(const Block& block) const;

 private:
  struct Batch;
  struct Shared;  // with completion handlers, which may outlive the queue
  void open_locked(const std::string& kernel);
  void commit_locked();
  void wait_locked(std::unique_lock<std::mutex>& lock, uint64_t number);

  id<MTLCommandQueue> queue_;
  std::shared_ptr<Shared> shared_;
  std::unique_ptr<Batch> batch_;
};

}  // namespace rune::metal
