// The Scheduled IR: which kernels run, in what order, over which iteration spaces and buffers.
//
// A schedule owns its graph, and kernels refer to the graph's values. Strides and sizes are in
// elements, `*_bytes` in bytes, `est_ns` in nanoseconds. Items are numbered by position.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "schedule/kernel.h"

namespace rune::schedule {

// A value's buffer holds all of the value, row-major.

// The first and the last item that use a value's buffer, and the buffer's place in the arena if the
// value is a temporary.
struct Allocation {
  Value value;
  int64_t first = 0, last = 0;
  std::optional<int64_t> offset;
  RUNE_FIELDS(Allocation, f("", value), f("first", first), f("last", last), f("offset", offset))
};

// Items.

// Runs a kernel. `ops`, `inputs` and `outputs` replace the kernel's, by position. `arguments` are
// the values of the kernel's arguments.
struct Launch {
  int64_t kernel = 0;  // position in Schedule::kernels
  std::vector<Value> ops, inputs, outputs;
  Ints arguments;
  RUNE_FIELDS(Launch, f("kernel", kernel), f("ops", ops), f("inputs", inputs),
              f("outputs", outputs), f("arguments", arguments))
};

// Copies the value `src` to the value `dst`, whose buffer is on another device.
struct Memory_Transfer {
  Value src, dst;
  std::string src_device, dst_device;
  RUNE_FIELDS(Memory_Transfer, f("src", src), f("dst", dst), f("src_device", src_device),
              f("dst_device", dst_device))
};

// Waits until the devices have run everything that was launched before.
struct Synchronization {
  std::vector<std::string> devices;
  RUNE_FIELDS(Synchronization, f("devices", devices))
};

// A host call. It runs after all items that its operands need.
struct Host_Callback {
  std::string name;
  int64_t call = 0;  // the number of the function in the program
  // One input for each operand, in order, and one output for each result that is used.
  std::vector<Value> inputs, outputs;
  RUNE_FIELDS(Host_Callback, f("name", name), f("call", call), f("inputs", inputs),
              f("outputs", outputs))
};

// Runs a graph::Loop_Nest. `outputs` are the nodes of its results.
struct Loop_Nest {
  std::vector<Value> inputs, outputs;  // one input for each operand, in order
  RUNE_FIELDS(Loop_Nest, f("inputs", inputs), f("outputs", outputs))
};

// Items are numbered by position, and run in this order.
struct ScheduleItem {
  std::variant<Launch, Memory_Transfer, Synchronization, Host_Callback, Loop_Nest> operation;
  bool operator==(const ScheduleItem&) const = default;
  const Launch* launch() const { return std::get_if<Launch>(&operation); }
  const Memory_Transfer* transfer() const { return std::get_if<Memory_Transfer>(&operation); }
  const Synchronization* synchronization() const {
    return std::get_if<Synchronization>(&operation);
  }
  const Host_Callback* callback() const { return std::get_if<Host_Callback>(&operation); }
  const Loop_Nest* loops() const { return std::get_if<Loop_Nest>(&operation); }
};

// The values whose buffers an item reads and writes.
struct ItemAccesses {
  std::vector<Value> reads, writes;
};
ItemAccesses accesses_of(const ScheduleItem& item);

// Item `to` waits for item `from`. `values` are the values that `from` writes and `to` reads. If
// one of the two is a synchronization, there may be none.
struct Dependency {
  int64_t from = 0, to = 0;
  std::vector<Value> values;
  RUNE_FIELDS(Dependency, f("from", from), f("to", to), f("values", values))
};

enum class FusionType : uint8_t { Elementwise, Reduction, Mixed };
const char* name_of(FusionType type);

// Two values that could share a kernel, whether they do, and why.
struct FusionOpportunity {
  Value producer, consumer;
  FusionType fusion_type = FusionType::Elementwise;
  bool taken = false;
  double benefit_score = 0;  // ns saved
  int64_t memory_saved = 0;  // bytes
  std::string reason;
  RUNE_FIELDS(FusionOpportunity, f("producer", producer), f("consumer", consumer),
              f("type", fusion_type), f("taken", taken), f("score", benefit_score),
              f("memory_saved", memory_saved), f("reason", reason))
};

// The cost of an item.
struct ItemAnalysis {
  int64_t flops = 0;
  int64_t bytes_read = 0;  // each element of each input once
  int64_t bytes_written = 0;
  int64_t accumulators = 0;  // of one thread
  double occupancy = 1;      // the share of the device's cores or threads that have work
  int64_t work_ns = 0;       // on one core or compute unit
  int64_t est_ns = 0;        // on the device, launch included
  RUNE_FIELDS(ItemAnalysis, f("flops", flops), f("bytes_read", bytes_read),
              f("bytes_written", bytes_written), f("accumulators", accumulators),
              f("occupancy", occupancy), f("work_ns", work_ns), f("est_ns", est_ns))
};

struct Schedule {
  Graph graph;
  std::vector<Kernel> kernels;  // in the order of their first launches
  std::vector<ScheduleItem> items;
  // By output of the graph: the value whose buffer holds it, row-major.
  std::vector<Value> outputs;
  std::vector<Dependency> dependencies;
  std::vector<Allocation> allocations;  // of all buffers, by ascending value
  std::vector<FusionOpportunity> fusion_opportunities;
  std::vector<ItemAnalysis> analysis;  // by item
  Ints critical_path;                  // the items on it
  int64_t arena_bytes = 0;             // of temporaries
  int64_t total_memory_usage = 0;      // peak bytes: inputs, outputs and temporaries
  int64_t estimated_runtime_ns = 0;    // along the critical path

  // The kernel that an item launches; null for other items.
  const Kernel* kernel_of(const ScheduleItem& item) const {
    return item.launch() ? &kernels[item.launch()->kernel] : nullptr;
  }
};

}  // namespace rune::schedule

RUNE_ENUM_CODEC(rune::schedule::FusionType, 3, rune::schedule::name_of);
