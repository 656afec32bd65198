// The Scheduled IR's kernels: iteration spaces, buffers, and the stages that run at their points.
//
// Strides and sizes are in elements.
#pragma once

#include <optional>
#include <string>
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
//
// The buffer of a value that a kernel reads or writes holds all of the value, row-major. Scratch
// memory holds a part of a value for the workgroup that fills it: `shape` is that part's, positions
// count from the part's first element, and `strides` lead from element to element. Along
// `run_axis`, runs of `run` elements are adjacent, and the axis's stride leads from one run to the
// next.
struct Scratch {
  Value value;
  Ints shape;
  Ints strides;
  std::optional<int64_t> run_axis = std::nullopt;
  int64_t run = 1;
  int64_t elements = 0;  // of memory
  bool operator==(const Scratch&) const = default;
  template <class F>
  void fields(F&& f) {
    f("", value);
    f("shape", shape);
    f("strides", strides);
    f("run_axis", run_axis);
    f("run", run);
    f("elements", elements);
  }
};

// Announces loads some time before. Without an axis: single elements that are gathered from `from`,
// `ahead` elements of the gather's last dimension earlier. With one: what the stage over this axis
// loads from `from`, `ahead` elements further on in memory.
struct Prefetch {
  Value from;
  std::optional<int64_t> axis;
  int64_t ahead = 1;
  bool operator==(const Prefetch&) const = default;
  template <class F>
  void fields(F&& f) {
    f("", from);
    f("axis", axis);
    f("ahead", ahead);
  }
};

// How the threads of a workgroup that share a reduction combine their partial results: by a tree
// through shared memory, or first those of a SIMD-group by shuffles.
enum class ThreadCombination : uint8_t { None, SharedTree, Shuffles };
const char* name_of(ThreadCombination combination);

// What happens to reductions that several threads share. With `atomic`, workgroups (of a Scatter,
// threads) bring what they have into the result by atomic operations; an earlier kernel has begun
// it.
struct Combination {
  ThreadCombination threads = ThreadCombination::None;
  bool atomic = false;
  bool operator==(const Combination&) const = default;
  template <class F>
  void fields(F&& f) {
    f("threads", threads);
    f("atomic", atomic);
  }
};

// How a kernel's contraction, its only reduction, runs on tiles of m x n x k, by a device's matrix
// operation (one of Capabilities::matrix_ops) or, with m and k of 1, by multiply-adds of single
// threads, which count as SIMD-groups of one. A workgroup's block of the result is a rectangle of
// `groups` SIMD-groups, each of which computes `tiles` tiles: both along the rows' and the columns'
// axis, which are the kernel's thread axes. Neighbouring tiles, or runs of `adjacent_tiles` of
// them, are of neighbouring SIMD-groups. Blocks and tiles may reach beyond the axes' sizes.
//
// With a `depth`, the workgroup brings the operands' panels of so many elements of the reduced axis
// into shared memory, step by step (matrix_tiles.h). With two `copies` of the panels, those of the
// next step are loaded before this step's products.
struct MatrixPlan {
  int64_t m = 0, n = 0, k = 0;
  DType operands = DType::Float32;  // as multiplied; they may be widened from it in the graph
  int64_t rows = 0, columns = 0, reduced = 0;  // axes
  int64_t row_operand = 0;                     // which of the contraction's operands has the rows
  Ints tiles, groups;
  int64_t depth = 0;
  int64_t copies = 1;
  // Where a thread's elements of a tile are several pieces: how many neighbours a piece has, of a
  // row of the result and of the operand with the rows, of a column of the other operand.
  std::optional<int64_t> piece = std::nullopt;
  bool operator==(const MatrixPlan&) const = default;
  // By side of the block: 0 that of the rows, 1 that of the columns.
  int64_t axis(size_t side) const { return side == 0 ? rows : columns; }
  size_t operand(size_t side) const { return static_cast<size_t>(row_operand) ^ side; }
  int64_t tile_size(size_t side) const { return side == 0 ? m : n; }
  int64_t block_size(size_t side) const { return tile_size(side) * tiles[side] * groups[side]; }
  // Of neighbouring tiles, so many are of one SIMD-group: a thread's own rows are as many
  // neighbours as its columns, if they are enough.
  int64_t adjacent_tiles(size_t side) const {
    return side == 0 && m == 1 && k == 1 && n > 1 && depth > 0 && tiles[0] % n == 0 ? n : 1;
  }
  bool divides(int64_t axis) const { return axis == rows || axis == columns || axis == reduced; }
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
    f("depth", depth);
    f("copies", copies);
    f("piece", piece);
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
// the kernel reduces, its identity, for a kernel whose workgroups combine atomically. Scan: carries
// an accumulator along its axis, in order, and stores it at every point. Scatter: brings the
// updates, numbered by its axis, into a buffer that an earlier stage or kernel began, at positions
// that are data; the updates of one element in order unless they are combined atomically. Outer
// axes are those in no stage.
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

// Kernels.

// Where a launch reads or stores elements of a buffer: `scale` times its argument of this number
// further on than the kernel says.
struct Shift {
  Value buffer;
  int64_t argument = 0;
  int64_t scale = 1;
  bool operator==(const Shift&) const = default;
  template <class F>
  void fields(F&& f) {
    f("", buffer);
    f("argument", argument);
    f("scale", scale);
  }
};

// A Const_Scalar node whose value, in a launch, has the bits of its argument of this number.
struct ConstantArgument {
  Value constant;
  int64_t argument = 0;
  bool operator==(const ConstantArgument&) const = default;
  template <class F>
  void fields(F&& f) {
    f("", constant);
    f("argument", argument);
  }
};

struct Kernel;

// Two outer axes of equal size in which a kernel's one output is symmetric. Of register tiles, only
// those that have points with row >= column are computed; what they have is stored there, and at
// the points' mirror images.
struct Mirror {
  int64_t rows = 0, columns = 0;
  bool operator==(const Mirror&) const = default;
  template <class F>
  void fields(F&& f) {
    f("rows", rows);
    f("columns", columns);
  }
};

// Runs its stages, in order, at every point of the outer axes.
struct Staged {
  std::vector<Stage> stages;
  std::optional<Combination> combine = std::nullopt;  // where threads share a reduction
  std::optional<Mirror> mirror = std::nullopt;
  bool operator==(const Staged&) const = default;
  template <class F>
  void fields(F&& f) {
    f("stages", stages);
    f("combine", combine);
    f("mirror", mirror);
  }
};

// For each tile of the kernel's axes, inside its serial loops, runs the phases in order. Their
// first axes, block mapping and first serial loops are the kernel's, so that each of them goes on
// with its own loops over the tile (an axis whose innermost tile is 1 is at a point there). What a
// phase stores for later ones alone lies in the kernel's scratch buffers, one tile of it at a time.
struct Phased {
  std::vector<Kernel> phases;
  bool operator==(const Phased&) const;
  template <class F>
  void fields(F&& f) {
    f("phases", phases);
  }
};

// Runs its first stage, a contraction, by the plan; the others at each point of the result.
struct MatrixTiled {
  MatrixPlan plan;
  std::vector<Stage> stages;
  bool operator==(const MatrixTiled&) const = default;
  template <class F>
  void fields(F&& f) {
    f("matrix", plan);
    f("stages", stages);
  }
};

// What launches of equal structure run. A kernel names the values of its first launch.
struct Kernel {
  using Body = std::variant<Staged, Phased, MatrixTiled>;

  std::string name;        // what it does, or which phase it is
  std::string device;      // of its launches; phases have none
  std::vector<Value> ops;  // the graph's nodes that this kernel computes, ascending
  std::vector<Value> inputs, outputs;
  IterSpace iter;
  std::vector<Scratch> scratch;  // a workgroup's own
  std::vector<Prefetch> prefetches;
  std::vector<Value> nontemporal;  // outputs that are written past the caches
  // Of its launches: the arguments' names and ranges, and what they stand for. Phases have none.
  std::vector<SymVar> arguments;
  std::vector<Shift> shifts;
  std::vector<ConstantArgument> constants;
  Body body;
  bool operator==(const Kernel&) const = default;
  template <class F>
  void fields(F&& f) {
    f("name", name);
    f("device", device);
    f("ops", ops);
    f("inputs", inputs);
    f("outputs", outputs);
    f("scratch", scratch);
    f("iter", iter);
    f("prefetch", prefetches);
    f("nontemporal", nontemporal);
    f("arguments", arguments);
    f("shifts", shifts);
    f("constants", constants);
    f("body", body);
  }

  const std::vector<Stage>& stages() const;   // empty if the kernel has phases
  std::vector<Stage>& mutable_stages();       // of a kernel without phases
  const std::vector<Kernel>& phases() const;  // empty if it has none
  // Null of a kernel of another kind.
  const MatrixPlan* matrix() const;
  const Mirror* mirror() const;
  const Combination* combination() const;
  bool is_atomic() const { return combination() && combination()->atomic; }

  // Elements of a vector that a thread holds: by the mapping, or of a matrix tile.
  int64_t lanes() const;
  // Points of the iteration space, or vectors of them, that a thread computes at once.
  int64_t points_at_once() const;
  // What one workgroup covers of a block axis.
  int64_t workgroup_tile(int64_t axis) const;
  // The axis along which sums are carried in the output, from tile to tile.
  std::optional<int64_t> carried_axis() const;
  // How many workgroups the launch has.
  int64_t workgroups() const;
  // Whether the points of the block axes are dealt to the threads of all workgroups.
  bool deals_points_to_threads() const;
  // Whether a workgroup covers a square of two of the block axes then.
  bool deals_squares() const;
  // How much of a value its Map stages store: nothing if all of it.
  std::optional<int64_t> part_stored(Value v) const;
  const Scratch* scratch_of(Value v) const;  // null if the value is not kept
  const StageValue* stored(Value v) const;   // by a stage, or a phase's; null if by none
};

inline bool Phased::operator==(const Phased& other) const {
  return phases == other.phases;
}

// The axes that belong to no stage.
Ints outer_axes(const Kernel& kernel);
// The axes that a Reduce, Scan or Scatter stage runs along.
Ints reduced_axes(const Kernel& kernel);
// Whether the kernel computes a contraction.
bool contracts(const Graph& graph, const Kernel& kernel);
// Whether the stage's points must run in order: a Scan or a Scatter.
bool is_sequential(const Stage& stage);
// The kernel's last sequential stage, or null.
const Stage* sequential_stage(const Kernel& kernel);

}  // namespace rune::schedule

RUNE_ENUM_CODEC(rune::schedule::ThreadCombination, 3, rune::schedule::name_of);
RUNE_ENUM_CODEC(rune::schedule::StageKind, 4, rune::schedule::name_of);
