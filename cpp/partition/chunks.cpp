#include "partition/chunks.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "graph/infer.h"
#include "partition/needs.h"
#include "partition/reshaping.h"

namespace rune::partition {

using graph::Graph;
using graph::Node;
using graph::NodeKind;
using graph::Value;

namespace {

const char* const kCompute =
    "compute this part before (x.compute()), or block by block with dask (x.map_blocks)";

}  // namespace

Chunking::Chunking(const Graph& graph, const std::vector<Chunks>& arguments)
    : graph_(graph), arguments_(arguments), chunks_(graph.size()) {
  for (uint32_t id = 0; id < graph_.size(); ++id) {
    chunks_[id] = find({id});
    for (Ints& axis : chunks_[id]) align(axis);
  }
}

// Gives an axis the chunks of an argument's axis that has the same size and nearly as many chunks.
// So a value that was moved by a few elements stays aligned with the value before.
void Chunking::align(Ints& axis) const {
  if (rank(axis) != 1) return;
  const int64_t size = std::accumulate(axis.begin(), axis.end(), int64_t{0});
  for (const Chunks& argument : arguments_)
    for (const Ints& other : argument) {
      const auto more = static_cast<int64_t>(axis.size()) - static_cast<int64_t>(other.size());
      if (other.size() == 1 || more < -1 || more > 1 ||
          std::accumulate(other.begin(), other.end(), int64_t{0}) != size)
        continue;
      axis = other;
      return;
    }
}

// The better of two ways to divide an axis. Chunks of an argument are best, a single chunk is
// worst. If both are equally good, the first one.
const Ints& Chunking::better(const Ints& a, const Ints& b) const {
  return rank(b) > rank(a) ? b : a;
}

int Chunking::rank(const Ints& axis) const {
  if (axis.size() == 1) return 0;
  for (const Chunks& argument : arguments_)
    if (rune::contains(argument, axis)) return 2;
  return 1;
}

Chunks Chunking::find(Value v) const {
  const Node& node = graph_[v];
  for (const Dim& size : node.shape())
    if (!size.is_constant())
      refuse(node, "a size is known only when the program runs",
             "leave jit(dynamic=...) out for arrays in chunks");
  const Ints sizes = constants_of(node.shape());
  switch (cut_of(node)) {
    case Cut::Given:
      if (const auto* argument = node.as<graph::Placeholder>()) return arguments_[argument->index];
      return one_chunk(sizes);
    case Cut::Elementwise: {
      Chunks result = one_chunk(sizes);
      for (const Value operand : node.inputs)
        for (size_t i = 0; i < result.size(); ++i) result[i] = better(result[i], of(operand)[i]);
      return result;
    }
    case Cut::Moved: return moved(node, sizes);
    case Cut::Joined: return joined(node, sizes);
    case Cut::Reduced: return reduced(v);
    case Cut::Prefix: {
      const int64_t axis = node.as<graph::Scan>()->axis;
      Chunks result = of(node.inputs[0]);
      result[axis] = {sizes[axis]};
      return result;
    }
    case Cut::Selected: return selected(node);
    case Cut::Whole: return one_chunk(sizes);
    case Cut::Called: {
      const int64_t rows = node.as<graph::Host_Callback>()->row_rank();
      Chunks result = one_chunk(sizes);
      if (rows > 0) copy_rows(of(node.inputs[0]), static_cast<size_t>(rows), result);
      return result;
    }
    case Cut::Never: {
      const bool is_size = node.as<graph::Define_Var>() != nullptr;
      refuse(node,
             is_size ? "a size is known only when the program runs"
                     : "a block's program cannot contain it",
             kCompute);
    }
  }
  RUNE_UNREACHABLE("a Cut");
}

// Copies the chunks of the first `rows` axes. A block needs the other axes as a whole. If only they
// have several chunks, the longest of the first axes is divided into as many.
void Chunking::copy_rows(const Chunks& from, size_t rows, Chunks& result) {
  size_t blocks = 1, lines = 1, longest = 0;
  for (size_t i = 0; i < from.size(); ++i) (i < rows ? blocks : lines) *= from[i].size();
  std::copy_n(from.begin(), rows, result.begin());
  for (size_t i = 1; i < rows; ++i)
    if (from[i][0] > from[longest][0]) longest = i;
  if (blocks > 1 || lines == 1 || from[longest][0] == 0) return;
  const int64_t size = from[longest][0];
  const int64_t count = std::min(static_cast<int64_t>(lines), size);
  Ints& axis = result[longest];
  axis.assign(count, size / count);
  for (int64_t i = 0; i < size % count; ++i) ++axis[i];
}

Chunks Chunking::moved(const Node& node, const Ints& sizes) const {
  const Chunks& from = of(node.inputs[0]);
  switch (node.kind()) {
    case NodeKind::Reshape:
      return reshaped_chunks(constants_of(graph_[node.inputs[0]].shape()), sizes, from);
    case NodeKind::Permute: {
      Chunks result;
      for (const int64_t axis : node.as<graph::Permute>()->axes) result.push_back(from[axis]);
      return result;
    }
    case NodeKind::Expand: {
      Chunks result = from;
      for (size_t i = 0; i < sizes.size(); ++i)
        if (from[i] == Ints{1}) result[i] = {sizes[i]};
      return result;
    }
    case NodeKind::Pad: {
      Chunks result = from;
      for (size_t i = 0; i < sizes.size(); ++i) {
        result[i].front() += node.as<graph::Pad>()->widths[i].first.constant();
        result[i].back() += node.as<graph::Pad>()->widths[i].second.constant();
      }
      return result;
    }
    case NodeKind::Shrink: {
      Chunks result;
      for (size_t i = 0; i < sizes.size(); ++i) {
        const auto& [low, high] = node.as<graph::Shrink>()->limits[i];
        Ints ends = ends_of(from[i]);
        for (int64_t& end : ends) end = std::min(end, high.constant()) - low.constant();
        result.push_back(chunks_between(ends));
      }
      return result;
    }
    default: {
      Chunks result = from;
      for (const int64_t axis : node.as<graph::Flip>()->axes)
        std::reverse(result[axis].begin(), result[axis].end());
      return result;
    }
  }
}

// The chunks of a Cat. The parts' ends divide its axis only if a part has several chunks itself.
Chunks Chunking::joined(const Node& node, const Ints& sizes) const {
  const int64_t axis = node.as<graph::Cat>()->axis;
  Chunks result = one_chunk(sizes);
  Ints along;
  bool is_divided = false;
  for (const Value part : node.inputs) {
    const Chunks& chunks = of(part);
    for (size_t i = 0; i < sizes.size(); ++i)
      if (static_cast<int64_t>(i) != axis) result[i] = better(result[i], chunks[i]);
    is_divided |= chunks[axis].size() > 1;
    along.insert(along.end(), chunks[axis].begin(), chunks[axis].end());
  }
  if (is_divided) {
    std::erase(along, 0);
    result[axis] = along;
  }
  return result;
}

Chunks Chunking::reduced(Value v) const {
  const Node& node = graph_[v];
  if (const auto* reduce = node.as<graph::Reduce_Axis>()) {
    Chunks result = of(node.inputs[0]);
    for (const int64_t axis : reduce->axes) result[axis] = {1};
    return result;
  }
  Chunks result = contracted(v);
  result.resize(node.shape().size());
  return result;
}

Chunks Chunking::contracted(Value v) const {
  const Node& node = graph_[v];
  const auto& contract = *node.as<graph::Contract>();
  const Chunks &a = of(node.inputs[0]), &b = of(node.inputs[1]);
  Chunks result;
  for (const auto& [x, y] : contract.batch) result.push_back(better(a[x], b[y]));
  for (const int64_t axis : graph::free_axes(contract, 0, a.size())) result.push_back(a[axis]);
  for (const int64_t axis : graph::free_axes(contract, 1, b.size())) result.push_back(b[axis]);
  for (const auto& [x, y] : contract.contract) result.push_back(better(a[x], b[y]));
  return result;
}

Chunks Chunking::selected(const Node& node) const {
  const int64_t axis = node.as<graph::Gather>()->axis;
  const Chunks &source = of(node.inputs[0]), &indices = of(node.inputs[1]);
  Chunks result(source.begin(), source.begin() + axis);
  result.insert(result.end(), indices.begin(), indices.end());
  result.insert(result.end(), source.begin() + axis + 1, source.end());
  return result;
}

Chunks Chunking::to_reduce(Value v) const {
  const Node& node = graph_[v];
  return node.as<graph::Reduce_Axis>() ? of(node.inputs[0]) : contracted(v);
}

bool Chunking::is_reduced_in_parts(Value v) const {
  const Node& node = graph_[v];
  if (!node.as<graph::Reduce_Axis>() && !node.as<graph::Contract>()) return false;
  const Chunks chunks = to_reduce(v);
  const std::vector<bool> reduced = reduced_axes(graph_, v);
  for (size_t i = 0; i < chunks.size(); ++i)
    if (reduced[i] && chunks[i].size() > 1) return true;
  return false;
}

std::vector<size_t> Chunking::stored_operands(Value v) const {
  const Node& node = graph_[v];
  const Cut cut = cut_of(node);
  std::vector<size_t> result;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Chunks& chunks = of(node.inputs[i]);
    const auto is_divided = [](const Ints& axis) { return axis.size() > 1; };
    if (cut == Cut::Called ||
        (cut == Cut::Selected && i == 0 && is_divided(chunks[node.as<graph::Gather>()->axis])) ||
        (cut == Cut::Whole && std::any_of(chunks.begin(), chunks.end(), is_divided)))
      result.push_back(i);
  }
  return result;
}

bool Chunking::is_stored(Value v) const {
  const Node& node = graph_[v];
  if (const auto* scan = node.as<graph::Scan>()) return of(node.inputs[0])[scan->axis].size() > 1;
  // Only the needed elements of a View are read.
  const bool is_whole = cut_of(node) == Cut::Whole && !node.as<graph::View>();
  return is_whole && !stored_operands(v).empty();
}

std::vector<bool> reduced_axes(const Graph& graph, Value v) {
  const Node& node = graph[v];
  std::vector<bool> result(node.shape().size());
  if (const auto* reduce = node.as<graph::Reduce_Axis>())
    for (const int64_t axis : reduce->axes) result[axis] = true;
  if (const auto* contract = node.as<graph::Contract>())
    result.resize(result.size() + contract->contract.size(), true);
  return result;
}

}  // namespace rune::partition
