#include "schedule/prepare.h"

#include <algorithm>
#include <optional>
#include <set>

#include "alu/eval.h"
#include "graph/symbolic_sizes.h"
#include "schedule/graph_rewrite.h"
#include "schedule/grid_reduction.h"
#include "schedule/indexing.h"
#include "schedule/mapping.h"

namespace rune::schedule {

using graph::Builder;
using graph::Graph;
using graph::Node;
using graph::NodeKind;
using graph::Value;

namespace {

bool reduces_nothing(const Graph& graph, const Node& node) {
  const bool reduces = node.kind() == NodeKind::Reduce_Axis || node.kind() == NodeKind::Contract;
  if (!reduces || num_elements(node.shape()) == 0) return false;
  return std::any_of(node.inputs.begin(), node.inputs.end(),
                     [&](Value v) { return num_elements(graph[v].shape()) == 0; });
}

Value strip_reshapes(const Graph& graph, Value v) {
  while (graph[v].kind() == NodeKind::Reshape) v = graph[v].inputs[0];
  return v;
}

bool multiplies_with_itself(const Node& node) {
  return node.kind() == NodeKind::Contract && node.inputs[0] == node.inputs[1];
}

// What reads no element or calls the host becomes what kernels and callbacks can take, and the
// operands of a contraction two values, of which each can be kept in its own layout.
Graph prepare_operands(Graph graph) {
  const auto is_concerned = [&](const Node& node) {
    return node.kind() == NodeKind::Host_Callback || multiplies_with_itself(node) ||
           reduces_nothing(graph, node);
  };
  if (!any_node(graph, is_concerned)) return graph;
  return rebuild(graph, [&](Builder& builder, const Node& node, std::vector<Value> inputs) {
    if (node.kind() == NodeKind::Host_Callback)
      for (Value& v : inputs)
        if (!is_computed(builder[v]) && evaluation_of(builder[v]) != Evaluation::Memory)
          v = builder.contiguous(v);
    if (multiplies_with_itself(node))
      inputs[1] = builder.add(graph::Reshape{builder[inputs[1]].shape()}, {inputs[1]});
    if (!reduces_nothing(graph, node)) return copy_node(builder, node, std::move(inputs));
    const auto* reduce = node.as<graph::Reduce_Axis>();
    const ReduceOp op = reduce ? reduce->op : ReduceOp::Add;
    return builder.full(identity(op, node.dtype()), node.shape());
  });
}

}  // namespace

Graph prepare_outputs(Graph graph) {
  std::set<Value> taken;
  Builder builder(prepare_operands(std::move(graph)));
  std::vector<Value> outputs;
  for (const Value v : builder.graph().outputs) {
    const Value stripped = strip_reshapes(builder.graph(), v);
    const bool fresh = is_computed(builder[stripped]) && taken.insert(stripped).second;
    outputs.push_back(fresh ? stripped : builder.add(graph::Contiguous{}, {v}));
  }
  builder.set_outputs(std::move(outputs));
  return builder.take();
}

namespace {

struct Split {
  int64_t axis;   // the reduced axis that is split
  int64_t parts;  // partial results
};

// Rows that one core adds up at once, streaming along them: as many as a set of a first-level cache
// has lines, since rows often lie a power of two apart.
constexpr int64_t kStreamedRows = 8;
// Rows from this size on begin in pages of their own, where no prefetcher follows a column.
constexpr int64_t kStreamedRowBytes = 4096;

// A reduction of long rows element by element, in memory that no cache holds, goes by strips of
// rows: down a column each row costs a miss that nothing foresees.
std::optional<Split> split_into_strips(const Shape& from, const graph::Reduce_Axis& reduce,
                                       DType dtype, const Capabilities& caps,
                                       const std::vector<SymVar>& vars) {
  if (caps.model != ExecutionModel::Cores || reduce.axes.size() != 1) return std::nullopt;
  const int64_t axis = reduce.axes[0], rows = from[axis];
  const int64_t row_bytes =
      num_elements(Shape(from.begin() + axis + 1, from.end())) * size_of(dtype);
  if (row_bytes < kStreamedRowBytes || rows < 8 * kStreamedRows ||
      num_elements(from) * size_of(dtype) <= caps.last_level_bytes ||
      graph::symbolic_size(vars, rows))
    return std::nullopt;
  return Split{axis, rows / kStreamedRows};
}

std::optional<Split> choose_split(const Shape& from, const graph::Reduce_Axis& reduce,
                                  const Shape& to, const Capabilities& caps,
                                  const std::vector<SymVar>& vars) {
  if (!leaves_device_idle(from, to, caps)) return std::nullopt;
  const bool grid = caps.model == ExecutionModel::Grid;
  const int64_t busy = grid ? 4 * caps.num_cores : 2 * caps.num_cores;
  const int64_t wanted = grid ? parts_of_grid(caps) : 8 * caps.num_cores;
  // The outermost axis that is long enough keeps each part contiguous.
  for (const int64_t axis : reduce.axes)
    if (from[axis] >= 2 * wanted && !graph::symbolic_size(vars, from[axis]))
      return Split{axis, divisor_near(from[axis], wanted).value_or(wanted)};
  const int64_t longest =
      *std::max_element(reduce.axes.begin(), reduce.axes.end(),
                        [&](int64_t a, int64_t b) { return from[a] < from[b]; });
  if (from[longest] < busy || graph::symbolic_size(vars, from[longest])) return std::nullopt;
  return Split{longest, from[longest]};
}

// Reduces x (its `axis` long parts * rest) by parts along the axis: to partial results, then those;
// or where the parts' workgroups combine atomically, at once.
Value reduce_in_parts(Builder& builder, Value x, const graph::Reduce_Axis& reduce,
                      const Split& split, bool atomic) {
  const Shape from = builder.shape(x);
  Shape shape = from;
  shape[split.axis] = split.parts;
  shape.insert(shape.begin() + split.axis + 1, from[split.axis] / split.parts);
  Ints axes;
  for (const int64_t axis : reduce.axes) axes.push_back(axis >= split.axis ? axis + 1 : axis);
  const Value parts = builder.reshape(x, shape);
  Value total;
  if (atomic) {
    axes.insert(std::lower_bound(axes.begin(), axes.end(), split.axis), split.axis);
    total = builder.reduce(reduce.op, parts, axes);
  } else {
    const Value stored = builder.add(graph::Contiguous{}, {builder.reduce(reduce.op, parts, axes)});
    total = builder.reduce(reduce.op, stored, {split.axis});
  }
  Shape result = from;
  for (const int64_t axis : reduce.axes) result[axis] = 1;
  return builder.reshape(total, result);
}

}  // namespace

namespace {

// Below this many elements one core or thread scans them all.
constexpr int64_t kLongScan = 1 << 15;

// Into how many blocks of equal length a scan is best split, and how many elements are left over.
std::optional<Split> choose_blocks(const Shape& shape, int64_t axis, const Capabilities& caps) {
  const int64_t length = shape[axis], lines = num_elements(shape) / length;
  const bool grid = caps.model == ExecutionModel::Grid;
  const int64_t busy = grid ? caps.num_cores * caps.simd_width : 2 * caps.num_cores;
  if (num_elements(shape) < kLongScan || lines >= busy) return std::nullopt;
  // A core interleaves a few blocks; threads want short ones, but the scan of blocks is serial,
  // too.
  const int64_t wanted = grid ? std::min<int64_t>(4 * busy, 1024) : 8 * caps.num_cores;
  if (length < 4 * wanted) return std::nullopt;
  return Split{axis, divisor_near(length, wanted).value_or(wanted)};
}

// Scans x, whose axis is long parts * block, from `initial` on if it is valid.
Value scan_in_blocks(Builder& builder, Value x, Value initial, const graph::Scan& scan,
                     int64_t parts) {
  const Shape whole = builder.shape(x);
  Shape shape = whole;
  shape[scan.axis] = parts;
  shape.insert(shape.begin() + scan.axis + 1, whole[scan.axis] / parts);
  const Value blocks = builder.reshape(x, shape);
  const Value before = slice_axis(builder, blocks, scan.axis, 0, parts - 1);
  const Value totals = builder.reduce(scan.op, before, {scan.axis + 1});
  Shape one = builder.shape(totals);
  one[scan.axis] = 1;
  const Value first = initial.valid() ? builder.reshape(initial, one)
                                      : builder.full(neutral(scan.op, builder.dtype(x)), one);
  const Value starts = builder.scan(scan.op, builder.cat({first, totals}, scan.axis), scan.axis);
  return builder.reshape(builder.add(graph::Scan{scan.op, scan.axis + 1}, {blocks, starts}), whole);
}

}  // namespace

Graph split_scans(Graph graph, const Capabilities& caps) {
  if (!any_node(graph, [](const Node& node) { return node.kind() == NodeKind::Scan; }))
    return graph;
  const std::vector<SymVar> vars = graph.symbolic_vars();
  return rebuild(graph, [&](Builder& builder, const Node& node, std::vector<Value> inputs) {
    const auto* scan = node.as<graph::Scan>();
    const auto split = scan ? choose_blocks(node.shape(), scan->axis, caps) : std::nullopt;
    if (!split || graph::symbolic_size(vars, node.shape()[scan->axis]))
      return copy_node(builder, node, std::move(inputs));
    const int64_t size = node.shape()[scan->axis], main = size - size % split->parts;
    const Value initial = inputs.size() == 2 ? inputs[1] : Value{};
    const auto part = [&](Value x, int64_t low, int64_t high) {
      return slice_axis(builder, x, scan->axis, low, high);
    };
    const Value head =
        scan_in_blocks(builder, part(inputs[0], 0, main), initial, *scan, split->parts);
    if (main == size) return head;
    const Value tail =
        builder.add(*scan, {part(inputs[0], main, size), part(head, main - 1, main)});
    return builder.cat({head, tail}, scan->axis);
  });
}

namespace {

// Below this many elements one core or thread does all updates.
constexpr int64_t kLongScatter = 1 << 15;
// Copies of the target that are combined in one expression.
constexpr int64_t kMostCopies = 128;

// Into how many copies of the target, if any, `count` updates along its axis are best spread.
std::optional<int64_t> choose_copies(const Shape& target, const graph::Scatter& scatter,
                                     int64_t count, DType dtype, const Capabilities& caps) {
  const bool grid = caps.model == ExecutionModel::Grid;
  const int64_t lines = num_elements(target) / target[scatter.axis];
  const int64_t parallel = grid ? lines : lines / caps.lanes(dtype);
  if (scatter.mode == graph::ScatterMode::Set || updates_atomically(scatter, dtype, caps) ||
      caps.num_cores < 2 || parallel >= caps.num_cores || count * lines < kLongScatter)
    return std::nullopt;
  // Copies are filled and read once, whole vectors at a time.
  const int64_t most = std::min(kMostCopies, count / (2 * target[scatter.axis]));
  for (int64_t wanted = 8 * caps.num_cores; wanted >= caps.num_cores; wanted /= 2)
    if (wanted <= most) return std::min(divisor_near(count, wanted).value_or(wanted), most);
  return std::nullopt;
}

// The target with the updates, whose axis is long parts * rest: each part of them goes to a copy of
// the target that begins with the mode's neutral element.
Value scatter_in_copies(Builder& builder, const graph::Scatter& scatter, Value target,
                        Value indices, Value updates, int64_t parts) {
  const ReduceOp op = *graph::reduce_op(scatter.mode);
  const Shape shape = builder.shape(target);
  const int64_t count = builder.shape(indices)[0];
  Shape split = builder.shape(updates), copies = shape;
  split[scatter.axis] = parts;
  split.insert(split.begin() + scatter.axis + 1, count / parts);
  copies.insert(copies.begin(), parts);
  Ints parts_first{scatter.axis};
  for (int64_t i = 0; i < static_cast<int64_t>(split.size()); ++i)
    if (i != scatter.axis) parts_first.push_back(i);
  const Value own = builder.add(graph::Scatter{scatter.mode, scatter.axis + 1, 1},
                                {builder.full(neutral(op, builder.dtype(target)), copies),
                                 builder.reshape(indices, {parts, count / parts}),
                                 builder.permute(builder.reshape(updates, split), parts_first)});
  for (int64_t i = 0; i < parts; ++i) {
    const Value part = builder.reshape(slice_axis(builder, own, 0, i, i + 1), shape);
    target = builder.alu(alu_of(op), {target, part});
  }
  return target;
}

}  // namespace

Graph split_scatters(Graph graph, const Capabilities& caps) {
  if (!any_node(graph, [](const Node& node) { return node.kind() == NodeKind::Scatter; }))
    return graph;
  const std::vector<SymVar> vars = graph.symbolic_vars();
  return rebuild(graph, [&](Builder& builder, const Node& node, std::vector<Value> inputs) {
    const auto* scatter = node.as<graph::Scatter>();
    if (!scatter || scatter->batch) return copy_node(builder, node, std::move(inputs));
    const int64_t count = builder.shape(inputs[1])[0];
    const auto copies = choose_copies(node.shape(), *scatter, count, node.dtype(), caps);
    const auto is_symbolic = [&](int64_t size) { return graph::symbolic_size(vars, size); };
    if (!copies || is_symbolic(count) ||
        std::any_of(node.shape().begin(), node.shape().end(), is_symbolic))
      return copy_node(builder, node, std::move(inputs));
    const int64_t main = count - count % *copies;
    struct Updates {
      Value indices, values;
    };
    const auto part = [&](int64_t low, int64_t high) {
      if (low == 0 && high == count) return Updates{inputs[1], inputs[2]};
      const Value indices = slice_axis(builder, inputs[1], 0, low, high);
      return Updates{indices, slice_axis(builder, inputs[2], scatter->axis, low, high)};
    };
    const Updates most = part(0, main);
    const Value head =
        scatter_in_copies(builder, *scatter, inputs[0], most.indices, most.values, *copies);
    if (main == count) return head;
    const Updates rest = part(main, count);
    return builder.add(*scatter, {head, rest.indices, rest.values});
  });
}

namespace {

class ReductionSplitter {
 public:
  ReductionSplitter(const Graph& graph, const Capabilities& caps)
      : graph_(graph), caps_(caps), vars_(graph.symbolic_vars()), splits_(graph.size()) {
    for (uint32_t id = 0; id < graph.size(); ++id) splits_[id] = choose(graph.nodes[id]);
    atomic_ = are_atomic();
  }

  bool changes_nothing() const {
    return std::none_of(splits_.begin(), splits_.end(), [](const auto& split) { return split; });
  }

  Graph run() const {
    uint32_t id = 0;
    Graph result = rebuild(graph_, [&](Builder& builder, const Node& node, std::vector<Value> in) {
      const auto& split = splits_[id++];
      if (!split) return copy_node(builder, node, std::move(in));
      return reduce(builder, *node.as<graph::Reduce_Axis>(), in[0], *split);
    });
    for (Value& v : result.outputs)
      if (atomic_) v = strip_reshapes(result, v);
    return result;
  }

 private:
  std::optional<Split> choose(const Node& node) const {
    const auto* reduce = node.as<graph::Reduce_Axis>();
    if (!reduce) return std::nullopt;
    const Shape& from = graph_[node.inputs[0]].shape();
    const auto split = choose_split(from, *reduce, node.shape(), caps_, vars_);
    return split ? split : split_into_strips(from, *reduce, node.dtype(), caps_, vars_);
  }

  // Whether the parts are combined by atomic operations: all of them, so that reductions of one
  // array share a kernel; and outputs, since what is computed from the results joins the kernel
  // that combines stored ones.
  bool are_atomic() const {
    const std::vector<int> uses = live_uses(graph_);
    const std::set<Value> outputs(graph_.outputs.begin(), graph_.outputs.end());
    bool any = false;
    for (uint32_t id = 0; id < graph_.size(); ++id) {
      if (!splits_[id] || uses[id] == 0) continue;
      const Node& node = graph_.nodes[id];
      const ReduceOp op = node.as<graph::Reduce_Axis>()->op;
      if (uses[id] != 1 || !outputs.count(Value{id}) ||
          !combines_atomically(op, node.dtype(), caps_))
        return false;
      any = true;
    }
    return any;
  }

  Value reduce(Builder& builder, const graph::Reduce_Axis& reduce, Value x,
               const Split& split) const {
    const int64_t size = builder.shape(x)[split.axis], main = size - size % split.parts;
    const Value head = main < size ? slice_axis(builder, x, split.axis, 0, main) : x;
    const Value total = reduce_in_parts(builder, head, reduce, split, atomic_);
    if (main == size) return total;
    const Value tail = slice_axis(builder, x, split.axis, main, size);
    return builder.alu(alu_of(reduce.op), {total, builder.reduce(reduce.op, tail, reduce.axes)});
  }

  const Graph& graph_;
  const Capabilities& caps_;
  const std::vector<SymVar> vars_;
  std::vector<std::optional<Split>> splits_;  // by node
  bool atomic_ = false;
};

}  // namespace

Graph split_reductions(Graph graph, const Capabilities& caps) {
  const ReductionSplitter splitter(graph, caps);
  return splitter.changes_nothing() ? std::move(graph) : splitter.run();
}

}  // namespace rune::schedule
