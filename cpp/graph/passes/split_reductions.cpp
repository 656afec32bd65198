#include "graph/passes/passes.h"

#include <algorithm>
#include <optional>
#include <set>

#include "graph/parallel_work.h"
#include "graph/passes/rewrite.h"
#include "graph/search.h"

namespace rune::graph {

namespace {

struct Split {
  int64_t axis;              // the reduced axis that is split
  int64_t parts;             // the number of partial results
  int64_t side_by_side = 1;  // the number of rows that are treated as one wider row
};

// The number of rows that one core adds up at a time while it reads along them. It is the number of
// lines in a set of a first-level cache, because the distance of rows is often a power of two.
constexpr int64_t kStreamedRows = 8;
// Rows of at least this many bytes begin in different pages, so no prefetcher follows a column.
constexpr int64_t kStreamedRowBytes = 4096;

// Splits an elementwise reduction of long rows into strips of rows if the memory exceeds the
// caches. Going down a column, each row would cost a cache miss that no prefetcher predicts.
std::optional<Split> split_into_strips(const Shape& from, const Reduce_Axis& reduce, DType dtype,
                                       const Capabilities& caps) {
  if (caps.model != ExecutionModel::Cores || reduce.axes.size() != 1) return std::nullopt;
  const int64_t axis = reduce.axes[0];
  if (!from[axis].is_constant()) return std::nullopt;
  const int64_t rows = from[axis].constant();
  const int64_t row_bytes =
      max_elements(Shape(from.begin() + axis + 1, from.end())) * size_of(dtype);
  if (row_bytes < kStreamedRowBytes || rows < 8 * kStreamedRows ||
      max_elements(from) * size_of(dtype) <= caps.last_level_bytes)
    return std::nullopt;
  return Split{axis, rows / kStreamedRows};
}

// Whether workgroups combine their partial results by atomic operations. Then no split is needed.
bool is_combined_atomically(const Reduce_Axis& reduce, const Shape& from, const Shape& to,
                            DType dtype, const Capabilities& caps) {
  return combines_atomically(reduce.op, dtype, caps) && leaves_device_idle(from, to, caps);
}

// The number of threads of a grid that each add up a part of a column, and the least rows of a
// part. If each thread reads several elements at once, there are half as many threads as the device
// can run. The pieces of memory that are read at the same time are then fewer and longer.
bool reads_several(const Capabilities& caps) {
  return caps.points_per_thread > 1;
}
int64_t column_threads(const Capabilities& caps) {
  return (reads_several(caps) ? 1024 : 2048) * caps.num_cores;
}
int64_t least_rows(const Capabilities& caps) {
  return reads_several(caps) ? 4 : 2;
}

// Splits a reduction along other axes than the innermost one if it has fewer results than the
// device runs threads. Adjacent threads read adjacent columns.
std::optional<Split> split_columns(const Shape& from, const Reduce_Axis& reduce, const Shape& to,
                                   DType dtype, const Capabilities& caps) {
  const auto innermost = static_cast<int64_t>(from.size()) - 1;
  if (caps.model != ExecutionModel::Grid || !is_long_reduction(from) ||
      is_combined_atomically(reduce, from, to, dtype, caps) || !from[innermost].is_constant() ||
      from[innermost].constant() < caps.simd_width || reduce.axes.back() == innermost)
    return std::nullopt;
  const int64_t wanted = column_threads(caps) / std::max<int64_t>(max_elements(to), 1);
  for (const int64_t axis : reduce.axes)
    if (wanted > 1 && from[axis].is_constant() &&
        from[axis].constant() >= least_rows(caps) * wanted)
      return Split{axis, parts_near(from[axis].constant(), wanted)};
  return std::nullopt;
}

// If narrow rows are treated as one wider row, it has this many elements per thread of a
// SIMD-group.
constexpr int64_t kElementsOfLane = 4;

// If rows are narrower than a SIMD-group, treats several rows as one wider row. Adjacent threads
// read its columns, and the sums of its columns are added up at the end.
std::optional<Split> split_narrow_columns(const Shape& from, const Reduce_Axis& reduce,
                                          const Shape& to, DType dtype, const Capabilities& caps) {
  if (caps.model != ExecutionModel::Grid || !is_long_reduction(from) || reduce.axes.size() != 1 ||
      is_combined_atomically(reduce, from, to, dtype, caps) || !is_constant(from))
    return std::nullopt;
  const int64_t axis = reduce.axes[0], rows = from[axis].constant();
  const int64_t width = max_elements(Shape(from.begin() + axis + 1, from.end()));
  if (width < 2 || width >= caps.simd_width) return std::nullopt;
  int64_t side_by_side = 2;
  while (side_by_side * width < kElementsOfLane * caps.simd_width) side_by_side *= 2;
  const int64_t results = max_elements(to) * side_by_side;
  const int64_t wanted = std::max<int64_t>(column_threads(caps) / results, 1);
  if (rows < least_rows(caps) * wanted * side_by_side) return std::nullopt;
  const int64_t parts = wanted > 1 ? parts_near(rows / side_by_side, wanted) : 1;
  return Split{axis, parts, side_by_side};
}

// On a grid, a workgroup has threads only along the innermost axis. So a reduction of at least this
// many elements along several axes is split by rows, if each element takes at least this many
// operations and there are fewer results than cores.
constexpr int64_t kRowsOfGroups = 1 << 13;
constexpr size_t kOperationsOfRows = 8;

std::optional<Split> split_into_rows(const Shape& from, const Reduce_Axis& reduce, const Shape& to,
                                     const Capabilities& caps) {
  if (caps.model != ExecutionModel::Grid || reduce.axes.size() < 2 ||
      max_elements(from) < kRowsOfGroups || max_elements(to) >= caps.num_cores ||
      from[reduce.axes.back()].bound() >= caps.max_threads_per_group)
    return std::nullopt;
  const int64_t axis = reduce.axes.front();
  constexpr int64_t kFewRows = 16;
  if (!from[axis].is_constant() || from[axis].constant() < kFewRows) return std::nullopt;
  return Split{axis, from[axis].constant()};
}

std::optional<Split> choose_split(const Shape& from, const Reduce_Axis& reduce, const Shape& to,
                                  const Capabilities& caps) {
  if (!leaves_device_idle(from, to, caps)) return std::nullopt;
  const bool grid = caps.model == ExecutionModel::Grid;
  const int64_t busy = grid ? 4 * caps.num_cores : 2 * caps.num_cores;
  const int64_t wanted = grid ? parts_of_grid(caps) : 8 * caps.num_cores;
  // The outermost axis that is long enough keeps each part contiguous.
  for (const int64_t axis : reduce.axes)
    if (from[axis].is_constant() && from[axis].constant() >= 2 * wanted)
      return Split{axis, grid ? parts_near(from[axis].constant(), wanted)
                              : divisor_near(from[axis].constant(), wanted).value_or(wanted)};
  // If there are several axes and none is long, choose one that gives all cores work.
  if (grid && reduce.axes.size() > 1)
    for (const int64_t axis : reduce.axes)
      if (axis + 1 < static_cast<int64_t>(from.size()) && from[axis].is_constant() &&
          from[axis].constant() < busy && from[axis].constant() * max_elements(to) >= wanted)
        return Split{axis, from[axis].constant()};
  const int64_t longest =
      *std::max_element(reduce.axes.begin(), reduce.axes.end(),
                        [&](int64_t a, int64_t b) { return from[a].bound() < from[b].bound(); });
  if (!from[longest].is_constant() || from[longest].constant() < busy) return std::nullopt;
  return Split{longest, from[longest].constant()};
}

// Reduces x by parts along `axis`, whose size is parts * side_by_side * rest, and then reduces the
// partial results. If workgroups combine parts by atomic operations, does both at once.
Value reduce_in_parts(Builder& builder, Value x, const Reduce_Axis& reduce, const Split& split,
                      bool atomic) {
  Shape result = builder.shape(x);
  for (const int64_t axis : reduce.axes) result[axis] = 1;
  Ints axes;
  for (const int64_t axis : reduce.axes) axes.push_back(axis >= split.axis ? axis + 1 : axis);
  Value parts = split_axis(builder, x, split.axis, split.parts);
  Value total;
  if (split.side_by_side > 1) {
    const int64_t axis = split.axis + 1;
    parts = split_axis(builder, parts, axis,
                       builder.shape(parts)[axis].constant() / split.side_by_side);
    const Value stored = builder.add(Contiguous{}, {builder.reduce(reduce.op, parts, {axis})});
    total = builder.reduce(reduce.op, stored, {split.axis, axis + 1});
  } else if (atomic) {
    axes.insert(std::lower_bound(axes.begin(), axes.end(), split.axis), split.axis);
    total = builder.reduce(reduce.op, parts, axes);
  } else {
    const Value stored = builder.add(Contiguous{}, {builder.reduce(reduce.op, parts, axes)});
    total = builder.reduce(reduce.op, stored, {split.axis});
  }
  return builder.reshape(total, result);
}

class ReductionSplitter {
 public:
  ReductionSplitter(const Graph& graph, const Capabilities& caps)
      : graph_(graph), caps_(caps), splits_(graph.size()) {
    for (uint32_t id = 0; id < graph.size(); ++id) splits_[id] = choose(graph.nodes[id]);
    atomic_ = are_atomic();
  }

  bool changes_nothing() const {
    return std::none_of(splits_.begin(), splits_.end(), [](const auto& split) { return split; });
  }

  Graph run() const {
    return rewrite(graph_,
                   [&](Builder& builder, uint32_t id, const Node& node, std::vector<Value> in) {
                     if (!splits_[id]) return builder.copy(node, std::move(in));
                     return reduce(builder, *node.as<Reduce_Axis>(), in[0], *splits_[id]);
                   });
  }

 private:
  std::optional<Split> choose(const Node& node) const {
    const auto* reduce = node.as<Reduce_Axis>();
    if (!reduce) return std::nullopt;
    const Shape& from = graph_[node.inputs[0]].shape();
    if (const auto columns = split_columns(from, *reduce, node.shape(), node.dtype(), caps_))
      return columns;
    if (const auto narrow = split_narrow_columns(from, *reduce, node.shape(), node.dtype(), caps_))
      if (lies_by_rows(node.inputs[0], narrow->axis)) return narrow;
    if (const auto split = choose_split(from, *reduce, node.shape(), caps_)) return split;
    if (computes_much(node.inputs[0]))
      if (const auto rows = split_into_rows(from, *reduce, node.shape(), caps_)) return rows;
    return split_into_strips(from, *reduce, node.dtype(), caps_);
  }

  // Whether a value that is computed element by element reads memory in the order of its elements.
  // Operands that all rows along the axis share may have another order.
  bool lies_by_rows(Value value, int64_t axis) const {
    bool is_in_order = true;
    search(graph_, {value}, [&](Value v) {
      const Node& node = graph_[v];
      const bool computes =
          node.as<Unary>() || node.as<Binop>() || node.as<Ternary>() || node.as<Cast>();
      const bool is_shared = node.as<Expand>() &&
                             static_cast<size_t>(axis) < graph_[node.inputs[0]].shape().size() &&
                             graph_[node.inputs[0]].shape()[axis] == Dim(1);
      if (is_movement(node.kind()) && !is_shared && !node.as<Reshape>() && !node.as<Shrink>())
        is_in_order = false;
      return computes;
    });
    return is_in_order;
  }

  // Whether an element of the value takes many operations that would fuse with its reduction.
  bool computes_much(Value value) const {
    size_t operations = 0;
    search(graph_, {value}, [&](Value v) {
      const Node& node = graph_[v];
      const bool computes = node.as<Unary>() || node.as<Binop>() || node.as<Ternary>();
      operations += computes;
      return operations < kOperationsOfRows && (computes || is_movement(node.kind()));
    });
    return operations >= kOperationsOfRows;
  }

  // Whether parts are combined by atomic operations. That is decided for all reductions together,
  // so that those of the same array share a kernel. It is only done if all are outputs, or have no
  // use but a reshape that is one. Otherwise computations on results fuse with the kernel that
  // combines stored parts.
  bool are_atomic() const {
    const std::vector<uint32_t> uses = count_uses(graph_);
    std::set<Value> outputs;
    for (Value v : graph_.outputs) {
      while (uses[v.id] == 1 && graph_[v].as<Reshape>()) v = graph_[v].inputs[0];
      outputs.insert(v);
    }
    bool any = false;
    for (uint32_t id = 0; id < graph_.size(); ++id) {
      if (!splits_[id] || uses[id] == 0) continue;
      const Node& node = graph_.nodes[id];
      const Shape& from = graph_[node.inputs[0]].shape();
      if (uses[id] != 1 || !outputs.count(Value{id}) || splits_[id]->side_by_side > 1 ||
          !is_combined_atomically(*node.as<Reduce_Axis>(), from, node.shape(), node.dtype(), caps_))
        return false;
      any = true;
    }
    return any;
  }

  Value reduce(Builder& builder, const Reduce_Axis& reduce, Value x, const Split& split) const {
    const int64_t size = builder.shape(x)[split.axis].constant(),
                  main = size - size % (split.parts * split.side_by_side);
    const Value head = builder.slice(x, split.axis, 0, main);
    const Value total = reduce_in_parts(builder, head, reduce, split, atomic_);
    if (main == size) return total;
    const Value tail = builder.slice(x, split.axis, main, size);
    return builder.alu(alu_of(reduce.op), {total, builder.reduce(reduce.op, tail, reduce.axes)});
  }

  const Graph& graph_;
  const Capabilities& caps_;
  std::vector<std::optional<Split>> splits_;  // by node
  bool atomic_ = false;
};

}  // namespace

Graph split_reductions(Graph graph, const Capabilities& caps) {
  const ReductionSplitter splitter(graph, caps);
  return splitter.changes_nothing() ? std::move(graph) : splitter.run();
}

}  // namespace rune::graph
