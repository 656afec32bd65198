#include "graph/passes/passes.h"

#include <algorithm>
#include <optional>

#include "alu/eval.h"
#include "graph/parallel_work.h"
#include "graph/passes/rewrite.h"

namespace rune::graph {

namespace {

// If there are fewer updates than this, one core or thread does them all.
constexpr int64_t kLongScatter = 1 << 15;
// The most copies of the target that are combined in one expression.
constexpr int64_t kMostCopies = 128;

// On a grid, updates run at the same time, and those of the same element wait for one another.
// Copies of the target spread them. These are limits for the number of copies and of their elements
// in total, and the least number of updates per element of a copy.
constexpr int64_t kMostCopiesOfGrid = 128, kLeastCopiesOfGrid = 4;
constexpr int64_t kElementsOfCopies = 1 << 17;
constexpr int64_t kUpdatesOfElement = 8;

int64_t choose_copies_of_grid(int64_t elements, int64_t updates) {
  const int64_t most = std::min(
      {kMostCopiesOfGrid, kElementsOfCopies / elements, updates / (kUpdatesOfElement * elements)});
  int64_t copies = 1;
  while (2 * copies <= most) copies *= 2;
  return copies < kLeastCopiesOfGrid ? 1 : copies;
}

// The best number of copies of the target for this many updates along its axis. Nothing if copies
// do not pay.
std::optional<int64_t> choose_copies(const Shape& target, const Scatter& scatter,
                                     const Dim& updates, DType dtype, const Capabilities& caps) {
  if (!updates.is_constant() || !is_constant(target)) return std::nullopt;
  const bool grid = caps.model == ExecutionModel::Grid;
  const int64_t count = updates.constant(), size = target[scatter.axis].constant();
  const int64_t lines = max_elements(target) / size;
  if (scatter.mode != ScatterMode::Set && updates_atomically(scatter, dtype, caps) &&
      count >= kLongScatter) {
    const int64_t copies = choose_copies_of_grid(max_elements(target), count);
    return copies > 1 ? std::optional(copies) : std::nullopt;
  }
  const int64_t parallel = grid ? lines : lines / caps.lanes(dtype);
  if (scatter.mode == ScatterMode::Set || updates_atomically(scatter, dtype, caps) ||
      caps.num_cores < 2 || parallel >= caps.num_cores || count * lines < kLongScatter)
    return std::nullopt;
  // Copies are filled and read once, a vector at a time, so there must be more updates.
  const int64_t most = std::min(kMostCopies, count / (2 * size));
  for (int64_t wanted = 8 * caps.num_cores; wanted >= caps.num_cores; wanted /= 2)
    if (wanted <= most) return std::min(divisor_near(count, wanted).value_or(wanted), most);
  return std::nullopt;
}

// The target with the updates, whose axis has the size parts * rest. Each part of the updates goes
// to a copy of the target that begins with the mode's neutral element. A part consists of adjacent
// updates, or, if `in_turns` is set, of every parts-th update.
Value scatter_in_copies(Builder& builder, const Scatter& scatter, Value target, Value indices,
                        Value updates, int64_t parts, bool in_turns) {
  const ReduceOp op = *reduce_op(scatter.mode);
  const Shape shape = builder.shape(target);
  Shape copies = shape;
  copies.insert(copies.begin(), parts);
  // Divides the axis into parts, and moves the new axis of parts to the front.
  const auto by_parts = [&](Value x, int64_t axis) {
    const int64_t rest = builder.shape(x)[axis].constant() / parts;
    const Value split = split_axis(builder, x, axis, in_turns ? rest : parts);
    const int64_t of_parts = in_turns ? axis + 1 : axis;
    Ints parts_first{of_parts};
    for (int64_t i = 0; i < static_cast<int64_t>(builder.shape(split).size()); ++i)
      if (i != of_parts) parts_first.push_back(i);
    return builder.permute(split, parts_first);
  };
  updates = by_parts(updates, scatter.axis);
  indices = by_parts(indices, 0);
  const Value neutrals = builder.full(neutral(op, builder.dtype(target)), copies);
  const Value own =
      builder.add(Scatter{scatter.mode, scatter.axis + 1, 1}, {neutrals, indices, updates});
  if (in_turns)
    return builder.alu(alu_of(op), {target, builder.reshape(builder.reduce(op, own, {0}), shape)});
  for (int64_t i = 0; i < parts; ++i) {
    const Value part = builder.reshape(builder.slice(own, 0, i, i + 1), shape);
    target = builder.alu(alu_of(op), {target, part});
  }
  return target;
}

}  // namespace

Graph split_scatters(Graph graph, const Capabilities& caps) {
  if (!any_node(graph, [](const Node& node) { return node.kind() == NodeKind::Scatter; }))
    return graph;
  return rewrite(
      graph, [&](Builder& builder, uint32_t, const Node& node, std::vector<Value> inputs) {
        const auto* scatter = node.as<Scatter>();
        if (!scatter || scatter->batch) return builder.copy(node, std::move(inputs));
        const Dim& updates = builder.shape(inputs[1])[0];
        const auto copies = choose_copies(node.shape(), *scatter, updates, node.dtype(), caps);
        if (!copies) return builder.copy(node, std::move(inputs));
        const int64_t count = updates.constant(), main = count - count % *copies;
        const auto scattered = [&](Value target, int64_t low, int64_t high, int64_t parts) {
          const Value indices = builder.slice(inputs[1], 0, low, high);
          const Value values = builder.slice(inputs[2], scatter->axis, low, high);
          return parts > 1 ? scatter_in_copies(builder, *scatter, target, indices, values, parts,
                                               caps.model == ExecutionModel::Grid)
                           : builder.add(*scatter, {target, indices, values});
        };
        const Value head = scattered(inputs[0], 0, main, *copies);
        return main == count ? head : scattered(head, main, count, 1);
      });
}

}  // namespace rune::graph
