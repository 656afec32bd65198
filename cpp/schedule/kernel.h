// The kernels of the Scheduled IR: their iteration spaces, their buffers, and the stages that run
// at the points of the iteration spaces. Strides and sizes are in elements.
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
// The buffer of a value that a kernel reads or writes holds all of the value, in row-major order.
// Scratch memory holds a part of a value for the workgroup that fills it. `shape` is the shape of
// the part. Positions count from its first element, and `strides` lead from element to element.
// Along `run_axis`, runs of `run` elements are adjacent, and the axis's stride leads from one run
// to the next.
struct Scratch {
  Value value;
  Ints shape;
  Ints strides;
  std::optional<int64_t> run_axis = std::nullopt;
  int64_t run = 1;
  int64_t elements = 0;  // of memory
  RUNE_FIELDS(Scratch, f("", value), f("shape", shape), f("strides", strides),
              f("run_axis", run_axis), f("run", run), f("elements", elements))
};

// Announces accesses to `from` before they happen:
// - of an input without an axis, loads of single elements that are gathered, `ahead` elements of
//   the gather's last dimension earlier;
// - of an input with an axis, loads of the stage over this axis, `ahead` elements further on in
//   memory;
// - of an output, which has no axis, stores, `ahead` elements further on in memory.
struct Prefetch {
  Value from;
  std::optional<int64_t> axis;
  int64_t ahead = 1;
  RUNE_FIELDS(Prefetch, f("", from), f("axis", axis), f("ahead", ahead))
};

// How the threads of a workgroup that share a reduction combine their partial results: by a tree
// through shared memory, or first those of a SIMD-group by shuffles.
enum class ThreadCombination : uint8_t { None, SharedTree, Shuffles };
const char* name_of(ThreadCombination combination);

// How a reduction that several threads share is combined. With `atomic`, workgroups (for a Scatter:
// threads) combine their results in the output by atomic operations. An earlier kernel has stored
// its initial contents.
struct Combination {
  ThreadCombination threads = ThreadCombination::None;
  bool atomic = false;
  RUNE_FIELDS(Combination, f("threads", threads), f("atomic", atomic))
};

// How a kernel's contraction, its only reduction, runs on tiles of m x n x k. A device's matrix
// operation (one of Capabilities::matrix_ops) computes a tile. If m and k are 1, a single thread
// computes it by multiply-adds, and counts as a SIMD-group of one thread.
//
// A workgroup's block of the result is a rectangle of `groups` SIMD-groups, each of which computes
// `tiles` tiles. Both are numbers along the axis of the rows and that of the columns, which are the
// kernel's thread axes. Neighbouring tiles, or runs of `adjacent_tiles` of them, belong to
// neighbouring SIMD-groups. Blocks and tiles may reach beyond the axes' sizes.
//
// With a `depth`, the workgroup copies panels of the operands into shared memory, step by step
// (matrix_tiles.h). A panel has `depth` elements of the reduced axis. With two `copies`, the panels
// of the next step are loaded before the products of this step are computed.
struct MatrixPlan {
  int64_t m = 0, n = 0, k = 0;
  DType operands = DType::Float32;             // the multiplied dtype, which the graph may widen
  int64_t rows = 0, columns = 0, reduced = 0;  // axes
  int64_t row_operand = 0;                     // the number of the operand that has the rows
  Ints tiles, groups;
  int64_t depth = 0;
  int64_t copies = 1;
  // Set if a thread's elements of a tile are several pieces: the number of neighbours in a piece,
  // in a row of the result and of the operand with the rows, and in a column of the other operand.
  std::optional<int64_t> piece = std::nullopt;
  RUNE_FIELDS(MatrixPlan, f("m", m), f("n", n), f("k", k), f("operands", operands), f("rows", rows),
              f("columns", columns), f("reduced", reduced), f("row_operand", row_operand),
              f("tiles", tiles), f("groups", groups), f("depth", depth), f("copies", copies),
              f("piece", piece))
  // `side` is 0 for the rows of the block and 1 for its columns.
  int64_t axis(size_t side) const { return side == 0 ? rows : columns; }
  size_t operand(size_t side) const { return static_cast<size_t>(row_operand) ^ side; }
  int64_t tile_size(size_t side) const { return side == 0 ? m : n; }
  int64_t block_size(size_t side) const { return tile_size(side) * tiles[side] * groups[side]; }
  // The number of neighbouring tiles that belong to one SIMD-group. A thread has as many
  // neighbouring rows as columns, if it has enough rows.
  int64_t adjacent_tiles(size_t side) const {
    return side == 0 && m == 1 && k == 1 && n > 1 && depth > 0 && tiles[0] % n == 0 ? n : 1;
  }
  bool divides(int64_t axis) const { return axis == rows || axis == columns || axis == reduced; }
};

// Stages: the steps of a kernel at each point of its outer axes, in order.

enum class StageKind : uint8_t { Reduce, Map, Scan, Scatter };
const char* name_of(StageKind kind);

// A value, and the positions of its elements. A row-major position is `offset` plus the sum of
// strides[a] * axis a. There is an offset if the kernel stores a part of the value and other
// kernels store the rest. The strides of a stage's inner axes have another meaning in two kinds of
// stages:
// - Reduce: they give the position among the elements that are reduced to one, row-major over the
//   reduced axes.
// - Scatter: they give the number of the update, and the position is that of the element whose
//   coordinate along the scattered axis is 0.
struct StageValue {
  Value value;
  Ints strides;  // by axis of the iteration space
  std::optional<int64_t> offset = std::nullopt;
  RUNE_FIELDS(StageValue, f("", value), f("strides", strides), f("offset", offset))
};

// A stage runs at each point of the outer axes, which are the axes that belong to no stage.
// - Reduce: computes reductions that share one loop nest over `axes`.
// - Map: computes and stores values at every point of `axes`. For a Scatter node, it stores the
//   first operand. For a reduction that no stage of the kernel computes, it stores the identity,
//   which a later kernel with atomic combination needs.
// - Scan: carries an accumulator along its axis, in order, and stores it at every point.
// - Scatter: combines updates with a buffer that an earlier stage or kernel has begun, at positions
//   that are data. Its axis numbers the updates. Updates of one element are applied in order,
//   unless they are combined atomically.
//
// A stage may keep a value that it computes in a scratch buffer of the kernel. It may take values
// that earlier stages have kept. A Map stage with a `depth` runs inside the first `depth` serial
// loops, before the next one. It covers the tiles of the axes that those loops have not reduced to
// a point. Other stages run inside all loops over outer axes.
struct Stage {
  StageKind kind = StageKind::Map;
  Ints axes;
  std::vector<StageValue> values;
  std::optional<StageValue> keeps = std::nullopt;
  std::optional<std::vector<Value>> takes = std::nullopt;
  std::optional<int64_t> depth = std::nullopt;
  RUNE_FIELDS(Stage, f("", kind), f("axes", axes), f("values", values), f("keeps", keeps),
              f("takes", takes), f("depth", depth))
};

// Kernels.

// Moves a launch's accesses to a buffer by `scale` times one of the launch's arguments, which
// `argument` numbers.
struct Shift {
  Value buffer;
  int64_t argument = 0;
  int64_t scale = 1;
  RUNE_FIELDS(Shift, f("", buffer), f("argument", argument), f("scale", scale))
};

// A Const_Scalar node whose bits are one of a launch's arguments, which `argument` numbers.
struct ConstantArgument {
  Value constant;
  int64_t argument = 0;
  RUNE_FIELDS(ConstantArgument, f("", constant), f("argument", argument))
};

struct Kernel;

// Two outer axes of equal size in which the only output of a kernel is symmetric. Only register
// tiles that have points with row >= column are computed. Each point is stored at its place and at
// its mirror image.
struct Mirror {
  int64_t rows = 0, columns = 0;
  RUNE_FIELDS(Mirror, f("rows", rows), f("columns", columns))
};

// Runs its stages, in order, at every point of the outer axes.
struct Staged {
  std::vector<Stage> stages;
  std::optional<Combination> combine = std::nullopt;  // where threads share a reduction
  std::optional<Mirror> mirror = std::nullopt;
  RUNE_FIELDS(Staged, f("stages", stages), f("combine", combine), f("mirror", mirror))
};

// Runs the phases in order, for each tile of the kernel's axes, inside its serial loops. A phase
// begins with the kernel's axes, block mapping and serial loops, and continues with its own loops
// over the tile. (An axis whose innermost tile is 1 is at a point there.) A value that a phase
// stores only for later phases lies in the kernel's scratch buffers, one tile at a time.
struct Phased {
  std::vector<Kernel> phases;
  bool operator==(const Phased&) const;
  template <class F>
  void fields(F&& f) {
    f("phases", phases);
  }
};

// Runs its first stage, a contraction, as the plan says. Runs the other stages at each point of the
// result.
struct MatrixTiled {
  MatrixPlan plan;
  std::vector<Stage> stages;
  RUNE_FIELDS(MatrixTiled, f("matrix", plan), f("stages", stages))
};

// The code of one or more launches of equal structure. It refers to the values of its first launch.
struct Kernel {
  using Body = std::variant<Staged, Phased, MatrixTiled>;

  std::string name;        // says what it computes, or which phase it is
  std::string device;      // of its launches; phases have none
  std::vector<Value> ops;  // the graph's nodes that this kernel computes, ascending
  std::vector<Value> inputs, outputs;
  IterSpace iter;
  std::vector<Scratch> scratch;  // a workgroup's own
  std::vector<Prefetch> prefetches;
  std::vector<Value> nontemporal;  // outputs that are written past the caches
  // The arguments of its launches: their names and ranges, and their uses. Phases have none.
  std::vector<SymVar> arguments;
  std::vector<Shift> shifts;
  std::vector<ConstantArgument> constants;
  Body body;
  RUNE_FIELDS(Kernel, f("name", name), f("device", device), f("ops", ops), f("inputs", inputs),
              f("outputs", outputs), f("scratch", scratch), f("iter", iter),
              f("prefetch", prefetches), f("nontemporal", nontemporal), f("arguments", arguments),
              f("shifts", shifts), f("constants", constants), f("body", body))

  const std::vector<Stage>& stages() const;   // empty if the kernel has phases
  std::vector<Stage>& mutable_stages();       // of a kernel without phases
  const std::vector<Kernel>& phases() const;  // empty if it has none
  // Null if the kernel is of another kind.
  const MatrixPlan* matrix() const;
  const Mirror* mirror() const;
  const Combination* combination() const;
  bool is_atomic() const { return combination() && combination()->atomic; }

  // The number of elements in a thread's vectors, from the mapping or from the matrix tile.
  int64_t lanes() const;
  // The number of points (or vectors of points) of the iteration space that a thread computes at
  // once.
  int64_t points_at_once() const;
  // The number of points of a block axis that one workgroup covers.
  int64_t workgroup_tile(int64_t axis) const;
  // The axis along which sums are carried in the output, from tile to tile.
  std::optional<int64_t> carried_axis() const;
  // The number of workgroups of a launch.
  int64_t workgroups() const;
  // How many workgroups, whose numbers follow each other, copy the same tile to scratch memory in
  // this stage. It is 1 if a workgroup fills the memory several times.
  int64_t workgroups_sharing(const Stage& stage) const;
  // Whether the points of the block axes are dealt to the threads of all workgroups.
  bool deals_points_to_threads() const;
  // Whether, in that case, a workgroup covers a square of two of the block axes.
  bool deals_squares() const;
  // The number of a value's elements that its Map stages store; nothing if they store all.
  std::optional<int64_t> part_stored(Value v) const;
  const Scratch* scratch_of(Value v) const;  // null if the value is not kept
  const StageValue* stored(Value v) const;   // null if no stage, or stage of a phase, stores it
};

inline bool Phased::operator==(const Phased& other) const {
  return phases == other.phases;
}

// The axes that belong to no stage.
Ints outer_axes(const Kernel& kernel);
// The axes of the loops around the stages, outermost first. An axis has a loop for each size of its
// tiles.
Ints outer_loops(const Kernel& kernel);
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
