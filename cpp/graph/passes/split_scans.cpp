#include "graph/passes/passes.h"

#include <algorithm>
#include <optional>

#include "alu/eval.h"
#include "base/math.h"
#include "graph/passes/rewrite.h"

namespace rune::graph {

namespace {

// If there are fewer elements than this, one core or thread scans them all.
constexpr int64_t kLongScan = 1 << 15;

// On a grid: the number of SIMD-groups that keep a core busy if each thread scans a line alone. And
// the most blocks of a line, because few threads scan the blocks' totals.
constexpr int64_t kBusyGroups = 16;
constexpr int64_t kMostBlocks = 4096;

// The best number of blocks of equal length for a scan. Nothing if it is not split.
std::optional<int64_t> choose_blocks(const Shape& shape, int64_t axis, DType dtype,
                                     const Capabilities& caps) {
  if (!shape[axis].is_constant()) return std::nullopt;
  const int64_t length = shape[axis].constant(), lines = max_elements(shape) / length;
  const bool grid = caps.model == ExecutionModel::Grid;
  if (grid && max_elements(Shape(shape.begin() + axis + 1, shape.end())) > 1) {
    // Adjacent threads scan adjacent lines.
    const int64_t threads = kBusyGroups * caps.simd_width * caps.num_cores;
    const int64_t wanted = std::min(ceil_div(2 * threads, lines), kMostBlocks);
    if (lines >= threads || length < 4 * wanted) return std::nullopt;
    return parts_near(length, wanted);
  }
  // If the threads of a SIMD-group scan a line together, fewer lines keep the device busy.
  const bool together = caps.simd_shuffles[static_cast<size_t>(dtype)];
  const int64_t busy = !grid      ? 2 * caps.num_cores
                       : together ? 4 * caps.num_cores
                                  : caps.num_cores * caps.simd_width;
  if (max_elements(shape) < kLongScan || lines >= busy) return std::nullopt;
  // A core interleaves a few blocks. Threads want short blocks, but the scan of the totals is
  // serial and wants few.
  const int64_t wanted = !grid      ? 8 * caps.num_cores
                         : together ? 32 * caps.num_cores / lines
                                    : std::min<int64_t>(4 * busy, 1024);
  if (length < 4 * wanted) return std::nullopt;
  return divisor_near(length, wanted).value_or(wanted);
}

// Scans x in blocks. The size of its axis is a multiple of `parts`. The scan begins with `initial`
// if that is valid.
Value scan_in_blocks(Builder& builder, Value x, Value initial, const Scan& scan, int64_t parts) {
  const Shape whole = builder.shape(x);
  const Value blocks = split_axis(builder, x, scan.axis, parts);
  const Value before = builder.slice(blocks, scan.axis, 0, parts - 1);
  const Value totals = builder.reduce(scan.op, before, {scan.axis + 1});
  Shape one = builder.shape(totals);
  one[scan.axis] = 1;
  const Value first = initial.valid() ? builder.reshape(initial, one)
                                      : builder.full(neutral(scan.op, builder.dtype(x)), one);
  const Value starts = builder.scan(scan.op, builder.cat({first, totals}, scan.axis), scan.axis);
  return builder.reshape(builder.add(Scan{scan.op, scan.axis + 1}, {blocks, starts}), whole);
}

}  // namespace

Graph split_scans(Graph graph, const Capabilities& caps) {
  if (!any_node(graph, [](const Node& node) { return node.kind() == NodeKind::Scan; }))
    return graph;
  return rewrite(graph, [&](Builder& builder, uint32_t, const Node& node,
                            std::vector<Value> inputs) {
    const auto* scan = node.as<Scan>();
    const auto parts =
        scan ? choose_blocks(node.shape(), scan->axis, node.dtype(), caps) : std::nullopt;
    if (!parts) return builder.copy(node, std::move(inputs));
    const int64_t size = node.shape()[scan->axis].constant(), main = size - size % *parts;
    const Value initial = inputs.size() == 2 ? inputs[1] : Value{};
    const auto part = [&](Value x, int64_t low, int64_t high) {
      return builder.slice(x, scan->axis, low, high);
    };
    const Value head = scan_in_blocks(builder, part(inputs[0], 0, main), initial, *scan, *parts);
    if (main == size) return head;
    const Value tail =
        builder.add(*scan, {part(inputs[0], main, size), part(head, main - 1, main)});
    return builder.cat({head, tail}, scan->axis);
  });
}

}  // namespace rune::graph
