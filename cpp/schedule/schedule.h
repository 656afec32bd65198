// The Scheduled IR: which kernels run, in what order, over which iteration spaces and buffers.
//
// A schedule owns its graph; kernels name the graph's values. Strides and sizes are in elements,
// `*_bytes` in bytes, `est_ns` in nanoseconds. Items are numbered by position.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "graph/node.h"
#include "schedule/iter_space.h"
#include "symbolic/expr.h"
#include "types/capabilities.h"

namespace rune::schedule {

using graph::Graph;
using graph::Value;

// Buffers.

// What a thread holds in registers is the lowerer's: values computed in the scopes that are open.
enum class MemoryScope : uint8_t { Global, Shared };
const char* name_of(MemoryScope scope);

// Of scratch memory, the shape is that of the part held, and positions count from that part's
// first element; along a single contiguous axis, runs of `vector_width` elements are adjacent and
// the axis's stride leads from one run to the next.
struct Layout {
  Shape shape;
  Ints strides;
  int64_t alignment = 1;     // bytes
  int64_t vector_width = 1;  // elements accessed at once
  Ints contiguous_axes;      // axes, innermost last, over which elements are adjacent
  bool operator==(const Layout&) const = default;
  template <class F>
  void fields(F&& f) {
    f("shape", shape);
    f("strides", strides);
    f("alignment", alignment);
    f("vector_width", vector_width);
    f("contiguous_axes", contiguous_axes);
  }
};

struct Allocation {
  MemoryScope scope = MemoryScope::Global;
  int64_t size_bytes = 0;
  std::pair<int64_t, int64_t> lifetime{0, 0};  // first and last item that uses it
  std::optional<int64_t> alias_group;          // buffers of one group share memory
  std::optional<int64_t> offset;               // into the arena, of temporaries
  bool operator==(const Allocation&) const = default;
  template <class F>
  void fields(F&& f) {
    f("scope", scope);
    f("bytes", size_bytes);
    f("lifetime", lifetime);
    f("alias_group", alias_group);
    f("offset", offset);
  }
};

struct BufferInfo {
  Value buf_var;
  DType dtype = DType::Float32;
  Layout layout;
  Allocation alloc;
  bool is_input = false;  // of the kernel
  bool is_output = false;
  bool operator==(const BufferInfo&) const = default;
  template <class F>
  void fields(F&& f) {
    f("", buf_var);
    f("dtype", dtype);
    f("layout", layout);
    f("alloc", alloc);
    f("input", is_input);
    f("output", is_output);
  }
};

// The buffer that holds all of a value, row-major.
BufferInfo whole_buffer(const Graph& graph, Value v, bool is_input);

// Hints to the lowerer.

enum class HintKind : uint8_t { Vectorize, Unroll, Prefetch, Pipeline, Nontemporal };
const char* name_of(HintKind kind);

// Vectorize: `axis` in vectors of `amount` lanes. Unroll: `amount` copies of the loop over `axis`.
// Prefetch: what is gathered from `var`, `amount` elements of the gather's last dimension ahead;
// with an axis, what its stage loads from `var`, `amount` elements further on in memory. Pipeline:
// `axis`, the reduced one of a MatrixPlan, in steps with `amount` copies of the panels; with two,
// those of the next step are loaded before this step's products. Nontemporal: `var` is written past
// the caches.
struct LoopHint {
  HintKind kind = HintKind::Unroll;
  std::optional<int64_t> axis;
  std::optional<Value> var;
  int64_t amount = 1;
  bool operator==(const LoopHint&) const = default;
  template <class F>
  void fields(F&& f) {
    f("", kind);
    f("axis", axis);
    f("var", var);
    f("amount", amount);
  }
};

// How a reduction's partial results are combined within a thread: several accumulators as a Tree,
// one (None), those of a SIMD-group by shuffles (Shfl), or with them a mean and the first and
// second moments about it, from which the moments about the mean of all follow (Welford 1962, in
// the pairwise form of Chan, Golub and LeVeque 1983). How between threads: as a tree through shared
// memory, by atomic operations, by a second kernel over partial results, or not at all. Atomic and
// GridReduce are between workgroups; the threads of one combine as by SharedTree first, if they
// share a reduction. Atomic is into a buffer that an earlier kernel began.
enum class IntraThread : uint8_t { Tree, Welford, Shfl, None };
enum class InterThread : uint8_t { SharedTree, Atomic, GridReduce, None };
const char* name_of(IntraThread plan);
const char* name_of(InterThread plan);

struct ReductionPlan {
  Ints axes;  // positions in IterSpace::axes
  IntraThread intra_thread = IntraThread::None;
  InterThread inter_thread = InterThread::None;
  bool operator==(const ReductionPlan&) const = default;
  template <class F>
  void fields(F&& f) {
    f("axes", axes);
    f("intra", intra_thread);
    f("inter", inter_thread);
  }
};

// How a kernel's contraction, its only reduction, runs on tiles of m x n x k, by a device's matrix
// operation (one of Capabilities::matrix_ops) or, with m and k of 1, by multiply-adds of single
// threads, which count as SIMD-groups of one. A workgroup's block of the result is a rectangle of
// `groups` SIMD-groups, each of which computes `tiles` tiles: both along the rows' and the columns'
// axis, which are the kernel's thread axes. Neighbouring tiles are of neighbouring SIMD-groups.
// Blocks and tiles may reach beyond the axes' sizes.
//
// Where the reduced axis has tiles of [depth, k], the workgroup brings the operands' panels of so
// many elements into shared memory, step by step: the kernel's two scratch buffers, that of the
// operand with the rows first (matrix_tiles.h).
struct MatrixPlan {
  int64_t m = 0, n = 0, k = 0;
  DType operands = DType::Float32;  // as multiplied; they may be widened from it in the graph
  int64_t rows = 0, columns = 0, reduced = 0;  // axes
  int64_t row_operand = 0;                     // which of the contraction's operands has the rows
  Ints tiles, groups;
  bool operator==(const MatrixPlan&) const = default;
  // By side of the block: 0 that of the rows, 1 that of the columns.
  int64_t axis(size_t side) const { return side == 0 ? rows : columns; }
  size_t operand(size_t side) const { return static_cast<size_t>(row_operand) ^ side; }
  int64_t tile_size(size_t side) const { return side == 0 ? m : n; }
  int64_t block_size(size_t side) const { return tile_size(side) * tiles[side] * groups[side]; }
  template <class F>
  void fields(F&& f) {
    f("m", m);
    f("n", n);
    f("k", k);
    f("operands", operands);
    f("rows", rows);
    f("columns", columns);
    f("reduced", reduced);
    f("row_operand", row_operand);
    f("tiles", tiles);
    f("groups", groups);
  }
};

struct ScheduleContext {
  Ints global_dims{1, 1, 1};  // workgroups
  Ints local_dims{1, 1, 1};   // threads of a workgroup
  int64_t upcasted = 1;       // points of the iteration space that one thread computes at once
  std::string device;
  std::optional<int64_t> stream;
  bool operator==(const ScheduleContext&) const = default;
  template <class F>
  void fields(F&& f) {
    f("global", global_dims);
    f("local", local_dims);
    f("upcasted", upcasted);
    f("device", device);
    f("stream", stream);
  }
};

// Stages: what a kernel does at each point of its outer axes, in order.

enum class StageKind : uint8_t { Reduce, Map, Scan, Scatter };
const char* name_of(StageKind kind);

// A value and where it lies: its row-major position is the sum of strides[a] * axis a, from
// `offset` on where the kernel stores a part of the value, as others store the rest of it. Of a
// Reduce stage, the strides of the stage's inner axes give the position among the elements that are
// reduced to one (row-major over the reduced axes); of a Scatter stage, the number of the update,
// and the position is that of an element whose coordinate along the scattered axis is 0.
struct StageValue {
  Value value;
  Ints strides;  // by axis of the iteration space
  std::optional<int64_t> offset = std::nullopt;
  bool operator==(const StageValue&) const = default;
  template <class F>
  void fields(F&& f) {
    f("", value);
    f("strides", strides);
    f("offset", offset);
  }
};

// Reduce: computes reductions that share one loop nest over `axes`. Map: computes and stores values
// at every point of `axes`; of a Scatter node, its first operand; of a reduction that no stage of
// the kernel reduces, its identity, for a kernel with the plan Atomic. Scan: carries an accumulator
// along its axis, in order, and stores it at every point. Scatter: brings the updates, numbered by
// its axis, into a buffer that an earlier stage or kernel began, at positions that are data; the
// updates of one element in order unless the reduction plan says Atomic. Outer axes are those in no
// stage.
//
// A stage may keep a value that it computes in one of the kernel's scratch buffers, and take from
// scratch what stages before it have kept. A Map stage with a `depth` runs inside the first `depth`
// serial loops, before the next one, and covers the tiles of the axes that those loops have not
// brought down to a point; other stages run inside all loops over outer axes.
struct Stage {
  StageKind kind = StageKind::Map;
  Ints axes;
  std::vector<StageValue> values;
  std::optional<StageValue> keeps = std::nullopt;
  std::optional<std::vector<Value>> takes = std::nullopt;
  std::optional<int64_t> depth = std::nullopt;
  bool operator==(const Stage&) const = default;
  template <class F>
  void fields(F&& f) {
    f("", kind);
    f("axes", axes);
    f("values", values);
    f("keeps", keeps);
    f("takes", takes);
    f("depth", depth);
  }
};

// Items.

// A kernel with phases has no stages of its own. For each tile of its axes, inside its serial
// loops, it runs the phases in order; their first axes, block mapping and first serial loops are
// the kernel's, so that each of them goes on with its own loops over the tile (an axis whose
// innermost tile is 1 is at a point there). What a phase stores for later ones alone lies in the
// kernel's scratch buffers, one tile of it at a time.
struct Kernel {
  int64_t kernel_id = 0;
  std::string kernel_name;
  std::vector<Value> ops;  // the graph's nodes that this kernel computes
  std::vector<BufferInfo> inputs;
  std::vector<BufferInfo> outputs;
  std::vector<BufferInfo> scratch;  // scope Shared: a workgroup's own, for the kernel's lifetime
  IterSpace iter;
  std::vector<Stage> stages;
  std::vector<Kernel> phases;
  std::optional<ReductionPlan> reduce;
  std::optional<MatrixPlan> matrix;
  std::vector<LoopHint> hints;
  ScheduleContext context;
  bool operator==(const Kernel&) const = default;
  template <class F>
  void fields(F&& f) {
    f("id", kernel_id);
    f("name", kernel_name);
    f("ops", ops);
    f("inputs", inputs);
    f("outputs", outputs);
    f("scratch", scratch);
    f("iter", iter);
    f("stages", stages);
    f("phases", phases);
    f("reduce", reduce);
    f("matrix", matrix);
    f("hints", hints);
    f("context", context);
  }
  int64_t unroll(int64_t axis) const;  // 1 without a hint
  // Elements of a vector: of the vec axes, or those that a thread holds of a matrix tile; else 1.
  int64_t lanes() const;
  // How much of a value its Map stages store: nothing if all of it.
  std::optional<int64_t> part_stored(Value v) const;
  const BufferInfo* scratch_of(Value v) const;  // null if the value is not kept
  const StageValue* stored(Value v) const;      // by a stage, or a phase's; null if by none
};

// The axes that belong to no stage.
Ints outer_axes(const Kernel& kernel);
// Whether the kernel computes a contraction.
bool contracts(const Graph& graph, const Kernel& kernel);
// Whether the stage's points must run in order: a Scan or a Scatter.
bool is_sequential(const Stage& stage);
// The kernel's last sequential stage, or null.
const Stage* sequential_stage(const Kernel& kernel);

struct Memory_Transfer {
  int64_t transfer_id = 0;
  Value src_var, dst_var;
  std::string src_device, dst_device;
  Ints dims;
  std::optional<Ints> src_strides, dst_strides;
  int64_t size_bytes = 0;
  bool is_async = false;
  std::optional<int64_t> stream;
  bool operator==(const Memory_Transfer&) const = default;
  template <class F>
  void fields(F&& f) {
    f("id", transfer_id);
    f("src", src_var);
    f("dst", dst_var);
    f("src_device", src_device);
    f("dst_device", dst_device);
    f("dims", dims);
    f("src_strides", src_strides);
    f("dst_strides", dst_strides);
    f("bytes", size_bytes);
    f("async", is_async);
    f("stream", stream);
  }
};

enum class SyncType : uint8_t { Barrier, Fence, Event };
enum class SyncScope : uint8_t { Threadgroup, Device, System };
const char* name_of(SyncType type);
const char* name_of(SyncScope scope);

struct Synchronization {
  int64_t sync_id = 0;
  SyncType sync_type = SyncType::Barrier;
  std::optional<int64_t> event;
  SyncScope scope = SyncScope::Device;
  std::vector<std::string> devices;
  std::optional<int64_t> stream;
  bool operator==(const Synchronization&) const = default;
  template <class F>
  void fields(F&& f) {
    f("id", sync_id);
    f("type", sync_type);
    f("event", event);
    f("scope", scope);
    f("devices", devices);
    f("stream", stream);
  }
};

// A call to a function of the host, after all that its operands need.
struct Host_Callback {
  int64_t callback_id = 0;
  std::string callback_name;
  int64_t call = 0;  // number of the function among the program's
  // One for each operand, in order, and one for each result that is used; row-major.
  std::vector<BufferInfo> inputs, outputs;
  bool operator==(const Host_Callback&) const = default;
  template <class F>
  void fields(F&& f) {
    f("id", callback_id);
    f("name", callback_name);
    f("call", call);
    f("inputs", inputs);
    f("outputs", outputs);
  }
};

using Operation = std::variant<Kernel, Memory_Transfer, Synchronization, Host_Callback>;

struct ScheduleItem {
  int64_t item_id = 0;
  Operation operation;
  Ints depends_on;
  Ints dependents;
  bool operator==(const ScheduleItem&) const = default;
  const Kernel* kernel() const { return std::get_if<Kernel>(&operation); }
  const Host_Callback* callback() const { return std::get_if<Host_Callback>(&operation); }
};

// Calls f(inputs, outputs) with the buffers of a kernel or host callback.
template <class Item, class F>
void with_buffers(Item& item, F&& f) {
  const auto visit = [&](auto* operation) {
    if (operation) f(operation->inputs, operation->outputs);
  };
  visit(std::get_if<Kernel>(&item.operation));
  visit(std::get_if<Host_Callback>(&item.operation));
}

enum class DependencyKind : uint8_t { Data, Control };
const char* name_of(DependencyKind kind);

struct Dependency {
  int64_t dep_from = 0, dep_to = 0;  // items
  std::vector<Value> dep_vars;
  DependencyKind kind = DependencyKind::Data;
  bool operator==(const Dependency&) const = default;
  template <class F>
  void fields(F&& f) {
    f("from", dep_from);
    f("to", dep_to);
    f("vars", dep_vars);
    f("kind", kind);
  }
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
  bool operator==(const FusionOpportunity&) const = default;
  template <class F>
  void fields(F&& f) {
    f("producer", producer);
    f("consumer", consumer);
    f("type", fusion_type);
    f("taken", taken);
    f("score", benefit_score);
    f("memory_saved", memory_saved);
    f("reason", reason);
  }
};

struct ItemAnalysis {
  int64_t item_id = 0;
  int64_t flops = 0;
  int64_t bytes_read = 0;  // each element of each input once
  int64_t bytes_written = 0;
  int64_t regs_per_thread = 0;  // accumulators
  int64_t smem_bytes = 0;
  double occupancy = 1;  // share of the device's cores or threads that have work
  int64_t work_ns = 0;   // on one core or compute unit
  int64_t est_ns = 0;    // on the device, launch included
  bool operator==(const ItemAnalysis&) const = default;
  template <class F>
  void fields(F&& f) {
    f("item", item_id);
    f("flops", flops);
    f("bytes_read", bytes_read);
    f("bytes_written", bytes_written);
    f("regs", regs_per_thread);
    f("smem", smem_bytes);
    f("occupancy", occupancy);
    f("work_ns", work_ns);
    f("est_ns", est_ns);
  }
};

struct Schedule {
  Graph graph;
  std::vector<ScheduleItem> items;
  // By output of the graph: the value whose buffer holds it, row-major.
  std::vector<Value> outputs;
  std::vector<Dependency> dependencies;
  std::vector<FusionOpportunity> fusion_opportunities;
  std::vector<ItemAnalysis> analysis;  // by item
  Ints critical_path;                  // items
  int64_t arena_bytes = 0;             // temporaries
  int64_t total_memory_usage = 0;      // peak bytes: inputs, outputs and temporaries
  int64_t estimated_runtime_ns = 0;    // along the critical path
};

}  // namespace rune::schedule

RUNE_ENUM_CODEC(rune::schedule::AxisRole, 2, rune::schedule::name_of);
RUNE_ENUM_CODEC(rune::schedule::MemoryScope, 2, rune::schedule::name_of);
RUNE_ENUM_CODEC(rune::schedule::HintKind, 5, rune::schedule::name_of);
RUNE_ENUM_CODEC(rune::schedule::IntraThread, 4, rune::schedule::name_of);
RUNE_ENUM_CODEC(rune::schedule::InterThread, 4, rune::schedule::name_of);
RUNE_ENUM_CODEC(rune::schedule::StageKind, 4, rune::schedule::name_of);
RUNE_ENUM_CODEC(rune::schedule::SyncType, 3, rune::schedule::name_of);
RUNE_ENUM_CODEC(rune::schedule::SyncScope, 3, rune::schedule::name_of);
RUNE_ENUM_CODEC(rune::schedule::DependencyKind, 2, rune::schedule::name_of);
RUNE_ENUM_CODEC(rune::schedule::FusionType, 3, rune::schedule::name_of);
