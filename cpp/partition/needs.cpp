#include "partition/needs.h"

#include <algorithm>

#include "base/error.h"
#include "graph/infer.h"
#include "partition/reshaping.h"

namespace rune::partition {

using graph::Graph;
using graph::Node;
using graph::NodeKind;
using graph::Value;

Cut cut_of(const Node& node) {
  switch (node.kind()) {
    case NodeKind::Placeholder:
    case NodeKind::Const_Scalar:
    case NodeKind::Vconst:
    case NodeKind::Iota:
    case NodeKind::Sink: return Cut::Given;
    case NodeKind::Binop:
    case NodeKind::Unary:
    case NodeKind::Ternary:
    case NodeKind::Cast:
    case NodeKind::Bitcast:
    case NodeKind::Contiguous: return Cut::Elementwise;
    case NodeKind::Custom:
      return graph::custom_reference(*node.as<graph::Custom>()) ? Cut::Never : Cut::Elementwise;
    case NodeKind::Reshape:
    case NodeKind::Permute:
    case NodeKind::Expand:
    case NodeKind::Pad:
    case NodeKind::Shrink:
    case NodeKind::Flip: return Cut::Moved;
    case NodeKind::Cat: return Cut::Joined;
    case NodeKind::Reduce_Axis:
    case NodeKind::Contract: return Cut::Reduced;
    case NodeKind::Scan: return Cut::Prefix;
    case NodeKind::Gather: return Cut::Selected;
    case NodeKind::View:
    case NodeKind::Scatter:
    case NodeKind::Loop_Nest: return Cut::Whole;
    case NodeKind::Host_Callback: return Cut::Called;
    case NodeKind::Copy:
    case NodeKind::Define_Var: return Cut::Never; RUNE_SOURCE_CASES break;
  }
  RUNE_UNREACHABLE(graph::name_of(node.kind()), " is no core node");
}

std::string name_of_node(const Node& node) {
  if (const auto* call = node.as<graph::Host_Callback>()) return call->name;
  if (const auto* custom = node.as<graph::Custom>()) return custom->op_name;
  return graph::name_of(node.kind());
}

void refuse(const Node& node, const std::string& reason, const std::string& hint) {
  user_error(ErrorKind::Unsupported, name_of_node(node), ": cannot compute blocks of ",
             shape_text(node.shape()), " (", reason, ")",
             node.location.empty() ? "" : ", at " + node.location, "\nhint: ", hint);
}

namespace {

Box moved_box(const Graph& graph, const Node& node, const Box& box) {
  const Ints from = constants_of(graph[node.inputs[0]].shape());
  switch (node.kind()) {
    case NodeKind::Reshape: return reshaping_of(from, constants_of(node.shape()), box).operand;
    case NodeKind::Permute: {
      Box result(from.size());
      const Ints& axes = node.as<graph::Permute>()->axes;
      for (size_t i = 0; i < axes.size(); ++i) result[axes[i]] = box[i];
      return result;
    }
    case NodeKind::Expand: {
      Box result = box;
      for (size_t i = 0; i < from.size(); ++i)
        if (from[i] == 1) result[i] = {0, 1};
      return result;
    }
    case NodeKind::Pad: {
      Box result = box;
      for (size_t i = 0; i < from.size(); ++i) {
        const int64_t before = node.as<graph::Pad>()->widths[i].first.constant();
        result[i] = {std::max<int64_t>(0, box[i].first - before),
                     std::min(from[i], box[i].second - before)};
      }
      return result;
    }
    case NodeKind::Shrink: {
      Box result = box;
      for (size_t i = 0; i < from.size(); ++i) {
        const int64_t low = node.as<graph::Shrink>()->limits[i].first.constant();
        result[i] = {box[i].first + low, box[i].second + low};
      }
      return result;
    }
    default: {
      Box result = box;
      for (const int64_t axis : node.as<graph::Flip>()->axes)
        result[axis] = {from[axis] - box[axis].second, from[axis] - box[axis].first};
      return result;
    }
  }
}

std::vector<Need> joined_boxes(const Graph& graph, const Node& node, const Box& box) {
  const int64_t axis = node.as<graph::Cat>()->axis;
  std::vector<Need> needs;
  int64_t start = 0;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const int64_t size = graph[node.inputs[i]].shape()[axis].constant();
    Box part = box;
    part[axis] = {std::max<int64_t>(0, box[axis].first - start),
                  std::min(size, box[axis].second - start)};
    if (!is_empty(part)) needs.push_back({i, std::move(part)});
    start += size;
  }
  return needs;
}

std::vector<Need> selected_boxes(const Graph& graph, const Node& node, const Box& box) {
  const int64_t axis = node.as<graph::Gather>()->axis;
  const auto rank = static_cast<int64_t>(graph[node.inputs[1]].shape().size());
  Box source(box.begin(), box.begin() + axis);
  source.emplace_back(0, graph[node.inputs[0]].shape()[axis].constant());
  source.insert(source.end(), box.begin() + axis + rank, box.end());
  return {{0, std::move(source)}, {1, Box(box.begin() + axis, box.begin() + axis + rank)}};
}

}  // namespace

std::vector<Need> needs_of(const Graph& graph, Value v, const Box& box) {
  const Node& node = graph[v];
  if (is_empty(box) && cut_of(node) != Cut::Called) return {};
  const auto shape = [&](size_t operand) {
    return constants_of(graph[node.inputs[operand]].shape());
  };
  std::vector<Need> needs;
  switch (cut_of(node)) {
    case Cut::Given: break;
    case Cut::Elementwise:
      for (size_t i = 0; i < node.inputs.size(); ++i) needs.push_back({i, box});
      break;
    case Cut::Moved: {
      Box operand = moved_box(graph, node, box);
      if (!is_empty(operand)) needs.push_back({0, std::move(operand)});
      break;
    }
    case Cut::Joined: return joined_boxes(graph, node, box);
    case Cut::Reduced: {
      if (const auto* reduce = node.as<graph::Reduce_Axis>()) {
        Box operand = box;
        for (const int64_t axis : reduce->axes) operand[axis] = {0, shape(0)[axis]};
        needs.push_back({0, std::move(operand)});
        break;
      }
      Box all = box;
      for (const auto& pair : node.as<graph::Contract>()->contract)
        all.emplace_back(0, shape(0)[pair.first]);
      return needs_of_sum(graph, v, all);
    }
    case Cut::Prefix: {
      const int64_t axis = node.as<graph::Scan>()->axis;
      Box operand = box, initial = box;
      operand[axis].first = 0;
      initial[axis] = {0, 1};
      needs.push_back({0, std::move(operand)});
      if (node.inputs.size() > 1) needs.push_back({1, std::move(initial)});
      break;
    }
    case Cut::Selected: return selected_boxes(graph, node, box);
    case Cut::Whole:
      for (size_t i = 0; i < node.inputs.size(); ++i) needs.push_back({i, whole(shape(i))});
      break;
    case Cut::Called: {
      const auto rows = node.as<graph::Host_Callback>()->row_rank();
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        needs.push_back({i, whole(shape(i))});
        if (i == 0) std::copy(box.begin(), box.begin() + rows, needs[0].box.begin());
      }
      break;
    }
    case Cut::Never: RUNE_UNREACHABLE(name_of_node(node), " is part of no block");
  }
  return needs;
}

std::vector<Need> needs_of_sum(const Graph& graph, Value v, const Box& box) {
  const Node& node = graph[v];
  const auto& contract = *node.as<graph::Contract>();
  const size_t summed = node.shape().size();
  size_t free = contract.batch.size();
  std::vector<Need> needs;
  for (size_t operand = 0; operand < 2; ++operand) {
    const auto axis_of = [operand](const std::pair<int64_t, int64_t>& pair) {
      return operand == 0 ? pair.first : pair.second;
    };
    const size_t rank = graph[node.inputs[operand]].shape().size();
    Box part(rank);
    for (size_t i = 0; i < contract.batch.size(); ++i) part[axis_of(contract.batch[i])] = box[i];
    for (size_t i = 0; i < contract.contract.size(); ++i)
      part[axis_of(contract.contract[i])] = box[summed + i];
    for (const int64_t axis : graph::free_axes(contract, operand, rank)) part[axis] = box[free++];
    needs.push_back({operand, std::move(part)});
  }
  return needs;
}

}  // namespace rune::partition
